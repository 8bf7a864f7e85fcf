//! The gradient of `slice_axis`.

pub mod cpu;
