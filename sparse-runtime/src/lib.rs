//! The runtime of `nnz`: arrays, kernels, update rules, readers of data and training, each layer a
//! crate of its own, under the paths that programs name.
//!
//! **Invariant.** A layer imports only layers above it in this list: `nnz-device`, `nnz-arrays`,
//! `nnz-step`, `nnz-data`, `nnz-train`.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub use nnz_arrays::{
    device, escaped, formats, initializer, interpreter, kernels, ops, parameter_memory as table,
    with_column_ids,
};
pub use nnz_data as data;
pub use nnz_step::{
    dims, engine, interaction, linear, lookups, macro_support, model, optimizer, read_rows,
    scatter_gradient, with_rows,
};
pub use nnz_train::{Error, Result, error, metric, predictor, schedule, store, training};

sparse_macros::operator_pages!();
