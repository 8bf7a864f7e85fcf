//! Elements by their positions along an axis.

pub mod cpu;
