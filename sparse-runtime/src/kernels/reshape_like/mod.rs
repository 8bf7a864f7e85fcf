//! The gradient of a change of shape.

pub mod cpu;
