//! Everything of `nnz` that runs: arrays, kernels, optimizers, data readers and training loops. Users depend on `nnz`,
//! which re-exports this crate beside the `graph!` macro.
//!
//! [`formats`] are the arrays, canonical by construction; [`kernels`] compute with them and check nothing; [`ops`] are
//! the kernels with their checks, as functions. [`model::Model`] is what `graph!` implements. [`data`] feeds a model,
//! [`optimizer`] moves its parameters, [`training`] does both for a number of epochs.

pub mod data;
pub mod device;
#[doc(hidden)]
pub mod emitted;
pub mod error;
pub mod escaped;
pub mod formats;
#[doc(hidden)]
pub mod gather;
pub mod initializer;
#[doc(hidden)]
pub mod interaction;
#[doc(hidden)]
pub mod interpreter;
pub mod kernels;
mod lanes;
mod large_pages;
#[doc(hidden)]
pub mod layers;
#[doc(hidden)]
pub mod linear;
#[doc(hidden)]
pub mod lookups;
mod memory;
pub mod metric;
pub mod model;
pub mod ops;
pub mod optimizer;
mod paces;
pub mod predictor;
mod prefetch;
mod random;
mod replace;
mod row_parts;
#[doc(hidden)]
pub mod scatter;
pub mod schedule;
mod stages;
pub mod store;
pub mod table;
mod team;
pub mod training;

pub use error::{Error, Result};

sparse_macros::operator_pages!();
