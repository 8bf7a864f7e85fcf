//! The positions of elements in order along an axis: as `sort`.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
