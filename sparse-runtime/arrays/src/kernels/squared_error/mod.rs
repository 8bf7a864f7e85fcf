//! Half the squared error, summed over the columns of a row, the mean over the rows. O(size).

pub mod cpu;
