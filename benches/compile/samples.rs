//! Arrays that the models are trained on: few, and made without a file.

use nnz::prelude::*;

const SAMPLES: usize = 64;

/// Columns of [`bags`].
pub const FEATURES: usize = 1000;

/// Ten entries a sample on average.
pub fn bags(seed: u64) -> Csr {
    Csr::random(SAMPLES, FEATURES, 0.01, Seed(seed)).expect("the density is below one")
}

/// 0 or 1 for each sample.
pub fn clicks() -> Dense {
    let clicks = (0..SAMPLES).map(|sample| (sample % 3 % 2) as f32);
    Dense::new([SAMPLES, 1], clicks.collect()).expect("one value a sample")
}

/// Numbers between -1 and 1.
pub fn numbers(columns: usize) -> Dense {
    let numbers = (0..SAMPLES * columns).map(|place| (place * 7 % 13) as f32 / 6.0 - 1.0);
    Dense::new([SAMPLES, columns], numbers.collect()).expect("as many values as the shape has")
}

/// `columns` ids below `count` for each sample.
pub fn ids(columns: usize, count: u32) -> Dense<u32> {
    let ids = (0..(SAMPLES * columns) as u32).map(|place| place * 31 % count);
    Dense::new([SAMPLES, columns], ids.collect()).expect("as many ids as the shape has")
}

/// An id below `count` for each sample.
pub fn one_id(count: u32) -> Dense<u32> {
    let ids = (0..SAMPLES as u32).map(|sample| sample * 31 % count);
    Dense::new([SAMPLES], ids.collect()).expect("one id a sample")
}
