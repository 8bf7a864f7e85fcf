//! The CUDA device. Kernels are the library's own text and run on a GPU that is emulated (see
//! `device.rs`), or real.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod device;
mod elementwise;
mod gradients;
mod losses;
mod memory;
mod nvrtc;
mod positions;
mod products;
mod rules;
mod updates;
mod waiting;

// What rules of the operator table can be applied to, and adversarial operands, as the oracle of
// the CPU's kernels has them.
#[path = "../../../tests/long/table/applications.rs"]
#[allow(dead_code, reason = "the oracle uses all of it")]
mod applications;
#[path = "../../../tests/long/table/given.rs"]
#[allow(dead_code, reason = "the oracle uses all of it")]
mod given;
#[path = "../../../tests/long/table/layers.rs"]
#[allow(dead_code, reason = "the oracle uses all of it")]
mod layers;
#[path = "../../../tests/long/table/layout.rs"]
#[allow(dead_code, reason = "the oracle uses all of it")]
mod layout;
#[path = "../../../tests/long/table/moved.rs"]
#[allow(dead_code, reason = "the oracle uses all of it")]
mod moved;
#[path = "../../../tests/long/table/naive.rs"]
#[allow(dead_code, reason = "the oracle uses all of it")]
mod naive;
#[path = "../../../tests/long/table/order.rs"]
#[allow(dead_code, reason = "the oracle uses all of it")]
mod order;

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
