//! The same elements under another shape.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
