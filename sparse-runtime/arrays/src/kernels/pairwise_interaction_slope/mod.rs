//! The gradient of pairwise interactions with respect to what x stores. O(nnz · k).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
