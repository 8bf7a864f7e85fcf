//! Two axes exchanged.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
