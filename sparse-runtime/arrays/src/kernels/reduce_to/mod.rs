//! Sums over the axes along which an operand was broadcast: the gradient of broadcasting. O(stored
//! elements + size of the result), in `f64`, rounded once. With equal shapes it is a copy.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
