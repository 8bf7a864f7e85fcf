//! What the compiler and the runtime share: storage types, the operator table, the intermediate
//! representation, its passes and the update rules.
#![forbid(unsafe_code)]

pub mod element;
pub mod storage;
pub mod update_rules;
