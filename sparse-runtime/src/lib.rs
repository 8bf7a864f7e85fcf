//! Arrays, kernels, optimizers, data readers and training loops of `nnz`.

pub mod data;
pub mod device;
#[doc(hidden)]
pub mod emitted;
pub mod error;
pub mod formats;
pub mod initializer;
#[doc(hidden)]
pub mod interpreter;
pub mod kernels;
#[doc(hidden)]
pub mod linear;
pub mod metric;
pub mod model;
pub mod ops;
pub mod optimizer;
mod replace;
pub mod schedule;
pub mod training;

pub use error::{Error, Result};
