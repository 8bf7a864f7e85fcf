//! Elements by their positions along an axis.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
