//! Elements put back where they came from along an axis: the gradient of `sort` and `topk`. O(size of the result).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
