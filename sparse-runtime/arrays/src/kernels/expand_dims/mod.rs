//! One more axis.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
