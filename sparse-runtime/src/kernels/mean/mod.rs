//! Means over an axis, or over everything: the sum, divided before it is rounded. Elements that are not stored count
//! as zeros. The mean of nothing is NaN.

pub mod cpu;
