//! The compiler's middle, shared by the macros and the runtime of `nnz`: storage types, the
//! operator table, the intermediate representation with its passes, and the diagnostics.
//!
//! The crate has no tokens, arrays or devices, so that every pass runs, and is tested, on text:
//!
//! ```
//! # mod nnz { pub use sparse_core as core; }
//! use nnz::core::{compile::compile, ir, storage::Storage};
//!
//! let graph = ir::parse(
//!     "model LinearRegression f32
//!      x = input csr f32 [n, d]
//!      y = label dense f32 [n, 1]
//!      w = param row_sparse f32 [d, 1] \"Zeros\"
//!      pred = dot(x, w)
//!      l = squared_error(pred, y)
//!      loss l
//!      output pred = pred",
//! )?;
//! let compiled = compile(graph);
//! assert!(compiled.diagnostics.is_empty());
//! let (_, gradient) = compiled.graph.gradients[0];
//! assert_eq!(compiled.graph.storage(gradient), Storage::RowSparse);
//! compiled.inspect(|plan| println!("{plan}"));
//! # Ok::<(), String>(())
//! ```
//!
//! [`operators`] is the table and [`compile`](compile::compile) the pipeline: read these two first.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod alternatives;
pub mod attributes;
pub mod compile;
pub mod diagnostics;
pub mod document;
pub mod element;
pub mod foreign_names;
pub mod formula;
pub mod inspect;
pub mod ir;
pub mod operators;
pub mod passes;
pub mod picture;
pub mod readable;
pub mod shape_rules;
pub mod shapes;
pub mod storage;
