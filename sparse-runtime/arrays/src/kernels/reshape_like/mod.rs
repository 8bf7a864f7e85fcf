//! The gradient of a change of shape.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
