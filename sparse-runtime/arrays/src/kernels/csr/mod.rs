//! The cast to csr: from dense and row_sparse, what is not zero is stored. O(rows + elements read).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
