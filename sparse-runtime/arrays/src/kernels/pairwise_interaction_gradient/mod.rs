//! The gradient of pairwise interactions with respect to their table. O(nnz · k), and of a dense result its size.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
