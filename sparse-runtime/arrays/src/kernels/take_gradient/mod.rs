//! The gradient of `take`.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
