//! A matrix with the same rows.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
