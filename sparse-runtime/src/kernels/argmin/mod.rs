//! The position of the smallest element.

pub mod cpu;
