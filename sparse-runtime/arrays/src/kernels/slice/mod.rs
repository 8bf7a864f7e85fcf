//! Part of an array, by `begin:end:step` of each axis.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
