//! The gradient of `repeat`.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
