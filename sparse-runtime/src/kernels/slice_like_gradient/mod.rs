//! The gradient of `slice_like`.

pub mod cpu;
