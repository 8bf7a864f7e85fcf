//! A matrix with the same rows.

pub mod cpu;
