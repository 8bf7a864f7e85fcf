//! Huber's loss on the CPU.

use crate::formats::{CsrView, Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::rows::element_loss;
use sparse_core::element::Float;

element_loss!(element, delta);

/// ½e² where |e| ≤ delta, delta · (|e| - delta/2) beyond.
#[inline(always)]
fn element<T: Float>(score: T, label: T, delta: T) -> (T, T) {
    let error = score - label;
    // The slope; NaN stays NaN.
    let slope = if error > delta {
        delta
    } else if error < -delta {
        -delta
    } else {
        error
    };
    (slope * (error - T::of(0.5) * slope), slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quadratic_up_to_delta_and_linear_beyond() {
        for (error, loss, slope) in [
            (0.5, 0.125, 0.5),
            (-2.0, 2.0, -2.0),
            (5.0, 8.0, 2.0),
            (-5.0, 8.0, -2.0),
            (0.0, 0.0, 0.0),
        ] {
            assert_eq!(element(error + 1.0f64, 1.0, 2.0), (loss, slope));
        }
        assert!(element(f64::NAN, 0.0, 1.0).0.is_nan());
    }
}
