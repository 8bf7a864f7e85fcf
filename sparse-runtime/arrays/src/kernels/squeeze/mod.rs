//! Axes of extent 1 removed.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
