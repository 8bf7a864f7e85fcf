//! Axes of extent 1 removed.

pub mod cpu;
