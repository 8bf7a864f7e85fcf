//! The cross entropy of a softmax on the CPU.

use crate::formats::{Dense, DenseView};
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
    label: DenseView<'_, u32>,
    _context: &mut Context,
) {
    mean_loss(out, score, label.values().iter().copied(), row_loss);
}

/// The gradient of the mean with respect to the scores.
///
/// # Panics
///
/// If a class id is not below the number of scores of a row.
pub fn gradient_dense_ids<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: DenseView<'_, u32>,
    _context: &mut Context,
) {
    mean_gradient(out, score, label.values().iter().copied(), |scores, label| {
        row(scores, label);
    });
}

/// The loss of one row; replaces the scores by its gradient, softmax(scores) less 1 at the label.
///
/// # Panics
///
/// If the label is not below the number of scores.
#[inline(always)]
pub fn row<T: Float>(scores: &mut [T], label: u32) -> T {
    let labelled = scores[label as usize];
    let (largest, total) = exponentials(scores);
    scores.iter_mut().for_each(|score| *score /= total);
    scores[label as usize] -= T::one();
    total.ln() - (labelled - largest)
}

/// The loss of one row: log Σ exp(score) - `score[label]`.
///
/// # Panics
///
/// If the label is not below the number of scores.
#[inline(always)]
pub fn row_loss<T: Float>(scores: &[T], label: u32) -> T {
    let labelled = scores[label as usize];
    let largest = scores.iter().fold(T::neg_infinity(), |largest, &score| largest.max(score));
    let total: T = scores.iter().map(|&score| (score - largest).exp()).sum();
    total.ln() - (labelled - largest)
}
