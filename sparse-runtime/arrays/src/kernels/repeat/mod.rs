//! Elements repeated.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
