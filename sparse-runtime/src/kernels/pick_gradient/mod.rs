//! The gradient of `pick`.

pub mod cpu;
