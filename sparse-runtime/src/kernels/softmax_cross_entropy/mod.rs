//! The cross entropy of the softmax of a row of scores with a class id, the mean over the rows. O(size), one exponential
//! an element for loss and gradient together.

pub mod cpu;
