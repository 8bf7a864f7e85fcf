//! One element of each row.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
