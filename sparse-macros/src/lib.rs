//! The `graph!` macro.
#![forbid(unsafe_code)]
