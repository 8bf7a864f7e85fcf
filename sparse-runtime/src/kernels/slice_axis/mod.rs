//! Part of an array along one axis.

pub mod cpu;
