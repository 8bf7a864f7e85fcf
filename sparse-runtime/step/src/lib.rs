//! The training step: update rules at work on parameters, and the fused loops of a batch that read
//! rows, compute, and update them.
//!
//! **Invariant.** A step costs what its batch stores, never what a table has rows, and allocates
//! nothing once it has seen its largest batch. Any number of threads gives the same bits.
//!
//! **Must not know** files of data, epochs, metrics or checkpoints.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod autotune;
pub mod column_partition;
pub mod engine;
pub mod error;
#[doc(hidden)]
pub mod in_library;
pub mod interaction;
pub mod linear;
pub mod lookups;
pub mod macro_support;
pub mod model;
pub mod optimizer;
pub mod read_rows;
pub mod scatter_gradient;
pub mod thread_pipeline;

pub use error::{Error, Result};
