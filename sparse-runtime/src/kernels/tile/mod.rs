//! An array repeated as a whole.

pub mod cpu;
