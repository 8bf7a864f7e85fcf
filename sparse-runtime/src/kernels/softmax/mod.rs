//! The softmax of each row. O(size); the largest score is subtracted first, so that nothing overflows.

pub mod cpu;
