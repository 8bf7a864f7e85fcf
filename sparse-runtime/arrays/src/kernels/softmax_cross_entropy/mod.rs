//! The cross entropy of the softmax of a row of scores with a class id or a row of targets, the
//! mean over the rows. O(size), one exponential an element for loss and gradient with a class
//! together.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
