//! Softmax on the CPU.

use crate::formats::{Dense, DenseView};
use crate::kernels::Context;
use sparse_core::element::Float;

/// The softmax of each row.
pub fn dense<T: Float>(out: &mut Dense<T>, x: DenseView<'_, T>, context: &mut Context) {
    out.assign_dense(x);
    let row_size = x.shape().row_size().max(1);
    for scores in out.values_mut().chunks_exact_mut(row_size) {
        T::in_accumulator(scores, &mut context.wide, row);
    }
}

/// Replaces the scores of one row by their probabilities.
#[inline(always)]
pub fn row<T: Float>(scores: &mut [T]) {
    let (_, total) = exponentials(scores);
    scores.iter_mut().for_each(|score| *score /= total);
}

/// Replaces the scores by exp(score - largest); gives the largest and the sum of the exponentials.
#[inline(always)]
pub(crate) fn exponentials<T: Float>(scores: &mut [T]) -> (T, T) {
    let largest = scores.iter().fold(T::neg_infinity(), |largest, &score| largest.max(score));
    let mut total = T::zero();
    for score in scores {
        *score = (*score - largest).exp();
        total += *score;
    }
    (largest, total)
}
