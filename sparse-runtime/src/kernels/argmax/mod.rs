//! The position of the largest element.

pub mod cpu;
