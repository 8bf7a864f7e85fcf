//! The logistic loss on the CPU.

use crate::formats::{Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::rows::{mean_gradient, mean_loss, rows};
use crate::kernels::scalar::{ScalarFunctions, sigmoid_and_softplus};
use sparse_core::element::Float;

/// The mean over the rows, in an array of rank 0.
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: DenseView<'_, T>,
    _context: &mut Context,
) {
    mean_loss(out, score, rows(label), row_loss);
}

/// The gradient of the mean with respect to the scores.
pub fn gradient_dense_dense<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: DenseView<'_, T>,
    _context: &mut Context,
) {
    mean_gradient(out, score, rows(label), |scores, label| {
        for (score, &label) in scores.iter_mut().zip(label) {
            *score = score.sigmoid() - target(label);
        }
    });
}

/// The loss of one row; replaces the scores by its gradient, sigmoid(score) - t.
#[inline(always)]
pub fn row<T: Float>(scores: &mut [T], label: &[T]) -> T {
    let mut loss = T::zero();
    for (score, &label) in scores.iter_mut().zip(label) {
        let target = target(label);
        let (sigmoid, softplus) = sigmoid_and_softplus(*score);
        loss += softplus - target * *score;
        *score = sigmoid - target;
    }
    loss
}

/// The loss of one row: Σ log(1 + exp(score)) - t · score.
#[inline(always)]
pub fn row_loss<T: Float>(scores: &[T], label: &[T]) -> T {
    let losses = scores.iter().zip(label);
    losses.map(|(&score, &label)| score.softplus() - target(label) * score).sum()
}

/// The probability that a label stands for: -1 is the negative class, as 0 is.
#[inline(always)]
fn target<T: Float>(label: T) -> T {
    label.at_least(T::zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_scores_are_no_trouble() {
        for (score, label, loss, gradient) in [
            (2e4f32, 1.0, 0.0, 0.0),
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
        let loss = |label: &[f64]| row_loss(&scores[..1], label);
        assert_eq!(loss(&minus), loss(&zero));
        assert!((loss(&half) - (loss(&zero) + loss(&[1.0])) / 2.0).abs() < 1e-15);
        let mut gradient = scores;
        let labels = [-1.0, 0.5, 1.0];
        assert_eq!(row(&mut gradient, &labels), row_loss(&scores, &labels));
        let sigmoid = 0.7f64.sigmoid();
        assert_eq!(gradient, [sigmoid, sigmoid - 0.5, sigmoid - 1.0]);
    }
}
