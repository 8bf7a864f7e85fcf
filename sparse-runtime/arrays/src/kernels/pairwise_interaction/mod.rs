//! The second-order term of a factorization machine, and its gradients with respect to the table
//! and to what `x` stores. O(nnz · k), and of a dense gradient its size: the sum over pairs is the
//! half of a square of a sum less the sum of squares. Sums in `f64`.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
