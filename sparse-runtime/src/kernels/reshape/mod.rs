//! The same elements under another shape.

pub mod cpu;
