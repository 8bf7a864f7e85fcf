//! The gradient of `tile`.

pub mod cpu;
