//! Arrays one after the other along an axis.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
