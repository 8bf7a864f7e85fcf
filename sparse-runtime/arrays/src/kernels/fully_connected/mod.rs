//! A layer of units: a product with a matrix that is read transposed, and a row added to each of
//! its rows. O(n · d · h), of a csr O(nnz · h).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
