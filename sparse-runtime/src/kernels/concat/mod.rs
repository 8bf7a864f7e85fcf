//! Arrays one after the other along an axis.

pub mod cpu;
