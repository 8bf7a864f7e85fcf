//! How many elements are stored.

pub mod cpu;
