//! What the compiler and the runtime share: storage types, the operator table, the intermediate
//! representation, its passes and the update rules.
#![forbid(unsafe_code)]

pub mod compile;
pub mod diagnostics;
pub mod document;
pub mod element;
pub mod formula;
pub mod ir;
pub mod operators;
pub mod passes;
pub mod shapes;
pub mod storage;
pub mod update_rules;
