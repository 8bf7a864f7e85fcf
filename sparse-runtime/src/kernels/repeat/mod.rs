//! Elements repeated.

pub mod cpu;
