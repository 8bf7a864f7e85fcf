//! The gradient of `slice`.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
