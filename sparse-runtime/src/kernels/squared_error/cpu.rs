//! Half the squared error on the CPU.

use crate::formats::{Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::rows::{mean_gradient, mean_loss, rows};
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
        row(scores, label);
    });
}

/// The loss of one row; replaces the scores by its gradient, score - label.
#[inline(always)]
pub fn row<T: Float>(scores: &mut [T], label: &[T]) -> T {
    let mut loss = T::zero();
    for (score, &label) in scores.iter_mut().zip(label) {
        *score -= label;
        loss += *score * *score;
    }
    T::of(0.5) * loss
}

/// The loss of one row: ½ Σ (score - label)².
#[inline(always)]
pub fn row_loss<T: Float>(scores: &[T], label: &[T]) -> T {
    let squares = scores.iter().zip(label).map(|(&score, &label)| {
        let error = score - label;
        error * error
    });
    T::of(0.5) * squares.sum()
}
