//! The compiler's middle, and what the compiler and the runtime of `nnz` share: storage types, the operator table, the
//! intermediate representation with its passes, the diagnostics, and the update rules.
//!
//! Nothing here knows tokens, arrays or devices, so that every pass can be run, and tested, on text:
//!
//! ```
//! use sparse_core::{compile::compile, ir, storage::Storage};
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
pub mod readable;
pub mod shape_rules;
pub mod shapes;
pub mod storage;
pub mod update_rules;
