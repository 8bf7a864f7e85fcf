//! The rows of a list.

pub mod cpu;
