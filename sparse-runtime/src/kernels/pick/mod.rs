//! One element of each row.

pub mod cpu;
