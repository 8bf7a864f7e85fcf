//! One more axis.

pub mod cpu;
