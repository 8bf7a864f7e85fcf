//! The CUDA device. Kernels are the library's own text and run on a GPU that is emulated (see `device.rs`), or real.

mod device;
mod elementwise;
mod losses;
mod memory;
mod nvrtc;
mod products;
mod updates;

use num_traits::Float;
use std::fmt::Display;

/// Holds numbers to expected ones, relative to those above 1.
fn near<T: Float + Display>(what: &str, found: &[T], expected: &[T], tolerance: T) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (position, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let bound = tolerance * expected.abs().max(T::one());
        let same = found == expected || found.is_nan() && expected.is_nan();
        assert!(
            same || (found - expected).abs() <= bound,
            "{what}: {found} instead of {expected} at {position}"
        );
    }
}
