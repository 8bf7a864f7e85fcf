//! Arrays, kernels, optimizers, data readers and training loops of `nnz`.

pub mod data;
pub mod device;
pub mod error;
pub mod formats;
pub mod initializer;
pub mod kernels;
pub mod metric;
pub mod model;
pub mod optimizer;
mod replace;
pub mod schedule;

pub use error::{Error, Result};
