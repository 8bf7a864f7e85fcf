//! Sparse machine learning.

pub use sparse_core as core;
pub use sparse_runtime::*;
