//! The gradient of softmax in each row, from the gradient g that arrives and the result y: y · (g - Σ g y). O(size).

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
