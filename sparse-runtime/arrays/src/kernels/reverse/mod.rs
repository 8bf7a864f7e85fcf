//! The opposite order.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
