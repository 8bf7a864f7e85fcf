//! Epochs, metrics, checkpoints, callbacks, schedules, workers and their store.
//!
//! **Invariant.** A run is a function of model, data, settings and seed: any number of threads and
//! of workers, and a run that was resumed, give the same bits.
//!
//! **Must not know** kernels, loops of a step, or formats of files of data.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod error;
pub mod metric;
pub mod predictor;
pub mod schedule;
pub mod store;
pub mod training;

pub use error::{Error, Result};
