//! As much of an array as another one has.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
