//! Two axes exchanged.

pub mod cpu;
