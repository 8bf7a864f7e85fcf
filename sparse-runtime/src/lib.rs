//! The runtime of `nnz`: arrays, kernels, optimizers, data readers and training loops. Users depend
//! on `nnz`, which re-exports this crate beside the `graph!` macro.
//!
//! [`formats`] are the arrays, canonical by construction. [`kernels`] compute with them and check
//! nothing; [`ops`] are the kernels with their checks, as functions. `graph!` implements
//! [`model::Model`]. [`data`] feeds a model, [`optimizer`] updates its parameters, [`training`]
//! does both for a number of epochs.

#[path = "../device/src/atomic_write.rs"]
mod atomic_write;
#[path = "../data/src/lib.rs"]
pub mod data;
#[path = "../arrays/src/device.rs"]
pub mod device;
pub mod error;
#[path = "../arrays/src/escaped.rs"]
pub mod escaped;
#[path = "../arrays/src/formats/mod.rs"]
pub mod formats;
#[doc(hidden)]
#[path = "../step/src/gather.rs"]
pub mod gather;
#[path = "../device/src/huge_pages.rs"]
mod huge_pages;
#[path = "../arrays/src/initializer.rs"]
pub mod initializer;
#[doc(hidden)]
#[path = "../step/src/interaction/mod.rs"]
pub mod interaction;
#[doc(hidden)]
#[path = "../arrays/src/interpreter.rs"]
pub mod interpreter;
#[path = "../arrays/src/kernels/mod.rs"]
pub mod kernels;
#[doc(hidden)]
#[path = "../step/src/layers/mod.rs"]
pub mod layers;
#[doc(hidden)]
#[path = "../step/src/linear/mod.rs"]
pub mod linear;
#[doc(hidden)]
#[path = "../step/src/lookups/mod.rs"]
pub mod lookups;
#[doc(hidden)]
#[path = "../step/src/macro_support/mod.rs"]
pub mod macro_support;
#[path = "../device/src/memory.rs"]
mod memory;
#[path = "../train/src/metric/mod.rs"]
pub mod metric;
#[path = "../step/src/model/mod.rs"]
pub mod model;
#[path = "../arrays/src/ops.rs"]
pub mod ops;
#[path = "../step/src/optimizer/mod.rs"]
pub mod optimizer;
#[path = "../step/src/paces.rs"]
mod paces;
#[path = "../arrays/src/parameter_memory/mod.rs"]
pub mod parameter_memory;
pub use parameter_memory as table;
pub mod predictor;
#[path = "../device/src/prefetch.rs"]
mod prefetch;
#[path = "../arrays/src/random.rs"]
mod random;
#[path = "../step/src/row_parts/mod.rs"]
mod row_parts;
#[doc(hidden)]
#[path = "../step/src/scatter/mod.rs"]
pub mod scatter;
#[path = "../train/src/schedule.rs"]
pub mod schedule;
#[path = "../device/src/simd/mod.rs"]
mod simd;
#[path = "../step/src/stages.rs"]
mod stages;
#[path = "../train/src/store/mod.rs"]
pub mod store;
#[path = "../device/src/thread_pool.rs"]
mod thread_pool;
#[path = "../train/src/training/mod.rs"]
pub mod training;

pub use error::{Error, Result};

sparse_macros::operator_pages!();
