//! The cross entropy of a softmax on the CPU.

use crate::formats::{Dense, DenseView, IdsView};
use crate::kernels::Context;
use crate::kernels::rows::{mean_gradient, mean_loss};
use crate::kernels::softmax::cpu::exponentials;
use sparse_core::element::Float;

/// The mean over the rows, in an array of rank 0.
///
/// # Panics
///
/// If a class id is not below the number of scores of a row.
pub fn dense_ids<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: IdsView<'_>,
    _context: &mut Context,
) {
    mean_loss(out, score, label.iter(), row_loss);
}

/// The gradient of the mean with respect to the scores.
///
/// # Panics
///
/// If a class id is not below the number of scores of a row.
pub fn gradient_dense_ids<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: IdsView<'_>,
    _context: &mut Context,
) {
    mean_gradient(out, score, label.iter(), |scores, label| {
        row(scores, label);
    });
}

/// The loss of one row; replaces the scores by its gradient, softmax(scores) less 1 at the label.
///
/// # Panics
///
/// If the label is not below the number of scores.
#[inline(always)]
pub fn row<T: Float>(scores: &mut [T], label: usize) -> T {
    let labelled = scores[label];
    let (largest, total) = exponentials(scores);
    scores.iter_mut().for_each(|score| *score /= total);
    scores[label] -= T::one();
    total.ln() - (labelled - largest)
}

/// The loss of one row: log Σ exp(score) - `score[label]`.
///
/// # Panics
///
/// If the label is not below the number of scores.
#[inline(always)]
pub fn row_loss<T: Float>(scores: &[T], label: usize) -> T {
    let labelled = scores[label];
    let largest = scores.iter().fold(T::neg_infinity(), |largest, &score| largest.max(score));
    let total: T = scores.iter().map(|&score| (score - largest).exp()).sum();
    total.ln() - (labelled - largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_scores_are_no_trouble() {
        let mut scores = [3e4f32, 3e4, -3e4];
        assert_eq!(row_loss(&scores, 0), 2f32.ln());
        assert_eq!(row_loss(&scores, 2), 6e4 + 2f32.ln());
        assert_eq!(row(&mut scores, 2), 6e4 + 2f32.ln());
        assert_eq!(scores, [0.5, 0.5, -1.0]);
    }

    #[test]
    fn loss_and_gradient_agree_with_the_loss_alone() {
        let scores = [0.3f64, -1.2, 2.5, 0.0];
        for label in 0..4 {
            let mut gradient = scores;
            assert_eq!(row(&mut gradient, label), row_loss(&scores, label));
            assert!(gradient.iter().sum::<f64>().abs() < 1e-15, "a softmax less one");
        }
    }
}
