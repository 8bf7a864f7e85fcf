//! The logistic loss on the CPU.

use crate::formats::{CsrView, Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::row_loss::RowLoss;
use crate::kernels::rows::element_loss;
use crate::kernels::scalar::{ScalarFunctions, Softplus, sigmoid_and_softplus};
use sparse_core::element::Float;

element_loss!(element, later = element_later -> Logistic);

/// log(1 + exp(score)) - t · score.
#[inline(always)]
fn element<T: Float>(score: T, label: T) -> (T, T) {
    let (loss, gradient) = element_later(score, label);
    (loss.now(), gradient)
}

#[inline(always)]
fn element_later<T: Float>(score: T, label: T) -> (Logistic<T>, T) {
    // The probability that a label stands for: -1 is the negative class, as 0 is.
    let target = label.at_least(T::zero());
    let (sigmoid, softplus) = sigmoid_and_softplus(score);
    (Logistic { softplus, linear: target * score }, sigmoid - target)
}

/// The loss of a score.
#[derive(Clone, Copy, Debug, Default)]
pub struct Logistic<T> {
    softplus: Softplus<T>,
    /// What is taken from it.
    linear: T,
}

impl<T: Float> RowLoss<T> for Logistic<T> {
    const LATER: bool = true;

    #[inline(always)]
    fn now(self) -> T {
        self.softplus.value() - self.linear
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        // What is left out is at most log 2, and 0 where it would not count.
        num_traits::Float::is_finite(self.softplus.bound() - self.linear)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_scores_are_no_trouble() {
        for (score, label, loss, gradient) in [
            (2e4f32, 1.0f32, 0.0, 0.0),
            (2e4, 0.0, 2e4, 1.0),
            (-2e4, 1.0, 2e4, -1.0),
            (-2e4, 0.0, 0.0, 0.0),
        ] {
            let mut scores = [score];
            assert_eq!(
                (row(&mut scores, &[label]), scores[0]),
                (loss, gradient),
                "{score} {label}"
            );
        }
    }

    #[test]
    fn a_label_of_minus_one_is_one_of_zero_and_probabilities_are_labels() {
        let scores = [0.7f64, 0.7, 0.7];
        let (minus, zero, half) = ([-1.0], [0.0], [0.5]);
        let loss = |label: &[f64]| row(&mut [0.7], label);
        assert_eq!(loss(&minus), loss(&zero));
        assert!((loss(&half) - (loss(&zero) + loss(&[1.0])) / 2.0).abs() < 1e-15);
        let mut gradient = scores;
        let labels = [-1.0, 0.5, 1.0];
        let each = labels.map(|label| loss(&[label]));
        assert_eq!(row(&mut gradient, &labels), each[0] + each[1] + each[2]);
        let sigmoid = 0.7f64.sigmoid();
        assert_eq!(gradient, [sigmoid, sigmoid - 0.5, sigmoid - 1.0]);
    }
}
