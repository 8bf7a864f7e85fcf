//! Dense, csr and row_sparse arrays, the memory of parameters, and the kernels of the operator
//! table on them, on a CPU and on a GPU.
//!
//! **Invariant.** An array is canonical from the moment it is made: row pointers ascend, column
//! ids of a row ascend and are distinct, ids are below their extent. Kernels check nothing inside.
//!
//! **Must not know** update rules, models, data files or training.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod bytes;
pub mod device;
pub mod escaped;
pub mod formats;
#[doc(hidden)]
pub mod in_library;
pub mod initializer;
pub mod interpreter;
pub mod kernels;
pub mod ops;
pub mod parameter_memory;
pub mod random;
