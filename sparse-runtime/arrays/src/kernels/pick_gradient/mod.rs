//! The gradient of `pick`.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
