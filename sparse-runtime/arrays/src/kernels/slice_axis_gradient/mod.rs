//! The gradient of `slice_axis`.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
