//! The positions of elements in order along an axis: as `sort`.

pub mod cpu;
