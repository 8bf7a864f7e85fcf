//! Elements by their positions along an axis, among them rows of a table by ids, and the gradient.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
