//! The gradient of `slice_like`.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
