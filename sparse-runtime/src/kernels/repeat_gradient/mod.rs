//! The gradient of `repeat`.

pub mod cpu;
