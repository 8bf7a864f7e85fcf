//! Part of an array along one axis.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
