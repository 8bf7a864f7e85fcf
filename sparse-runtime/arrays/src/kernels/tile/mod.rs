//! An array repeated as a whole.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
