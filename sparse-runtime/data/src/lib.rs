//! Data: datasets in memory, batches for a training loop, and readers for the formats of sparse
//! data.
//!
//! [`Dataset`] holds named columns. [`DataSource`] is the interface for a training loop, of data in
//! memory and of streams. [`libsvm`], [`npz`] and [`matrix_market`] read files; [`TextReader`]
//! reads those of any [`RowFormat`] ([`Delimited`], [`Ratings`], [`LibFfm`], [`VowpalWabbit`],
//! [`Words`]), and with the feature `parquet` columnar files. [`stream`] reads files larger than
//! memory; [`synthetic`] generates data.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod batches;
mod binding;
mod blocks;
mod cache;
mod classes;
mod column;
#[cfg(feature = "parquet")]
mod columnar;
mod dataset;
mod delimited;
mod error;
#[cfg(test)]
mod fault_tests;
mod feature_names;
mod file_stamp;
mod fingerprint;
mod frequency;
#[cfg(feature = "gzip")]
mod gzip;
mod hashed_entries;
mod hashing;
mod in_sequence;
mod label_statistics;
mod libffm;
pub mod libsvm;
pub mod matrix_market;
mod memory_or_stream;
#[cfg(feature = "npz")]
pub mod npz;
mod number;
mod order;
mod part;
mod problem;
mod ratings;
mod read_error;
mod report;
mod source;
mod split;
pub mod stream;
pub mod synthetic;
#[doc(hidden)]
pub mod text;
mod text_file;
mod vowpal_wabbit;
mod weights;
mod words;
#[cfg(any(feature = "zstd", feature = "parquet"))]
mod zstd;

pub use batches::{DatasetBatch, DatasetBatches};
pub use classes::Classes;
pub use column::{Column, ColumnValues};
#[cfg(feature = "parquet")]
pub use columnar::{SparseColumns, WrittenColumn, write_parquet};
pub use dataset::{Dataset, DatasetBuilder};
pub use delimited::{Delimited, NumberScale, Numbers, OpenQuotes};
pub use error::{ColumnName, DataError, Error, Result};
pub use feature_names::FeatureNames;
pub use frequency::FrequencyOrder;
pub use hashing::Hashing;
pub use in_sequence::InSequence;
pub use label_statistics::LabelStatistics;
pub use libffm::LibFfm;
pub use memory_or_stream::{AnyBatch, AnyBatches, AnyDataset};
pub use part::Part;
pub use problem::{ColumnChunk, Problem};
pub use ratings::{Ratings, Separator};
pub use read_error::{Excerpt, Place, ReadError};
pub use report::ReadReport;
pub use source::{
    Batch, BatchOptions, Batches, BytesRead, DataSource, Labels, LastBatch, Order, Position,
};
pub use text::{
    IdMap, OnError, ReadOptions, ReadProgress, RowFormat, SkippedRow, TextReader, WholeFormat,
    label_words,
};
pub use vowpal_wabbit::VowpalWabbit;
pub use weights::ClassWeights;
pub use weights::WEIGHT;
pub use words::{TermWeight, Words};
