//! Element-wise functions of two operands, with broadcasting.
//!
//! The closure is always f(first operand, second operand); what a result stores is said by the
//! family of the operator:
//!
//! | family | sparse with sparse | sparse with dense |
//! | --- | --- | --- |
//! | union (add) | what either stores; in csr, results equal to 0 are dropped | dense |
//! | intersection (multiply) | what both store | what the sparse operand stores |
//! | left (divide) | | what the left operand stores |
//! | gradient (g, x) | what both store: where no gradient arrives there is none | csr: what x stores; row_sparse: dense |
//!
//! Cost: O(stored elements read + size of the result), but for the intersection of row_sparse
//! arrays, which reads the rows of the smaller one only, however many rows a table has. A sparse
//! operand that is smaller than the result (a csr `[1, n]` with a dense `[m, n]`) is repeated
//! first, and stores in the result what it stores in each repetition; where the repeated axis is
//! not the first of a row_sparse operand, each of its elements is looked up in O(log rows).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
