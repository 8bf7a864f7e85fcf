//! One element of each row, at the position that an id says, and the gradient of that.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
