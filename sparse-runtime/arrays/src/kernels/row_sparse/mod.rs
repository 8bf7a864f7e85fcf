//! The cast to row_sparse: from dense, rows with an element that is not zero; from csr, rows with a stored entry.
//! O(rows + elements written).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
