//! The second-order term of a factorization machine. O(nnz · k): the sum over pairs is the half of a square of a sum less the sum of
//! squares. Sums in `f64`.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
