//! Sums over an axis, or over everything; always dense. O(stored elements + size of the result).
//!
//! Sums are computed in `f64` and rounded once, in an order that depends on the shapes only.

pub mod cpu;
