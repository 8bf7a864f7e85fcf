//! The opposite order.

pub mod cpu;
