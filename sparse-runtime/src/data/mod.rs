//! Data: datasets in memory, batches for a training loop, and readers for the formats that sparse data comes in.
//!
//! [`Dataset`] holds named columns; [`DataSource`] is what a training loop asks of it, or of a reader that streams.
//! [`libsvm`], [`npz`] and [`matrix_market`] read files, [`synthetic`] makes data up.

mod batches;
mod binding;
mod blocks;
mod classes;
mod column;
mod dataset;
mod error;
pub mod libsvm;
pub mod matrix_market;
#[cfg(feature = "npz")]
pub mod npz;
mod number;
mod order;
mod read_error;
mod source;
mod split;
pub mod synthetic;

pub use batches::{DatasetBatch, DatasetBatches};
pub use classes::Classes;
pub use column::{Column, ColumnValues};
pub use dataset::{Dataset, DatasetBuilder};
pub use error::{ColumnName, DataError};
pub use read_error::{Excerpt, Place, Problem, ReadError};
pub use source::{Batch, BatchOptions, Batches, DataSource, Labels, LastBatch, Order, Position};
