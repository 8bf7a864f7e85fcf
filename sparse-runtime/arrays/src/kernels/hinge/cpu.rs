//! The hinge loss on the CPU.

use crate::formats::{CsrView, Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::rows::element_loss;
use sparse_core::element::Float;

element_loss!(element);

/// max(0, 1 - t · score).
#[inline(always)]
fn element<T: Float>(score: T, label: T) -> (T, T) {
    let target = side(label);
    let short = T::one() - target * score;
    // At the margin every slope between 0 and -t is one; it is 0. NaN stays NaN.
    if short <= T::zero() { (T::zero(), T::zero()) } else { (short, -target) }
}

/// 1 for a label of 1/2 or above, -1 for any other.
#[inline(always)]
pub(crate) fn side<T: Float>(label: T) -> T {
    if label >= T::of(0.5) { T::one() } else { -T::one() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_zero_are_negative_and_the_margin_is_flat() {
        for label in [-1.0, 0.0] {
            assert_eq!(element(0.25f64, label), (1.25, 1.0));
            assert_eq!(element(-1.0f64, label), (0.0, 0.0));
        }
        assert_eq!((element(0.25f64, 1.0), element(3.0f64, 1.0)), ((0.75, -1.0), (0.0, 0.0)));
        assert!(element(f64::NAN, 1.0).0.is_nan());
    }

    #[test]
    fn n8_a_label_that_is_a_probability_is_positive_from_one_half_on() {
        assert_eq!([0.1, 0.49, 0.5, 0.9].map(side::<f64>), [-1.0, -1.0, 1.0, 1.0]);
    }
}
