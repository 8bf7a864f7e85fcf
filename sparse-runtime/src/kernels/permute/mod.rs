//! Axes in another order.

pub mod cpu;
