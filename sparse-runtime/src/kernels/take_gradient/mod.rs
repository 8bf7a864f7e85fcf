//! The gradient of `take`.

pub mod cpu;
