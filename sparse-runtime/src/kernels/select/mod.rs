//! One of two arrays, by a condition.

pub mod cpu;
