//! The logistic loss (binary cross entropy of a score), summed over the columns of a row, the mean over the rows. O(size),
//! one exponential an element for loss and gradient together.

pub mod cpu;
