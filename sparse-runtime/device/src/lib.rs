//! Processors and GPUs: threads, vectors, caches and pages of memory; the driver and the compiler
//! of a GPU; files that are replaced whole.
//!
//! **Invariant.** What is in this crate changes when a result is there, never which one: any
//! number of threads, any width of vectors and any distance of prefetch give the same bits.
//!
//! **Must not know** arrays, operators' kernels, update rules, models or data.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod atomic_write;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod huge_pages;
pub mod mapped_pages;
pub mod memory;
pub mod prefetch;
pub mod simd;
pub mod thread_pool;
