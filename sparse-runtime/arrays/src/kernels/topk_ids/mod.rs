//! The positions of the first elements in order along an axis: as `topk`.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
