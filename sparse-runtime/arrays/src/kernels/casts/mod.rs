//! Casts between storages, and zeros in the shape of an array.
//!
//! To dense O(size of the array); to csr O(rows + elements read), to row_sparse O(rows + elements
//! written): from dense, what is not zero is stored, or the rows of that. Of sparse zeros nothing
//! is stored: O(rows) for csr, O(1) for row_sparse.

pub(super) mod cpu;
#[cfg(feature = "cuda")]
pub(super) mod cuda;
