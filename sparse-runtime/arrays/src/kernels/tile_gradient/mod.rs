//! The gradient of `tile`.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
