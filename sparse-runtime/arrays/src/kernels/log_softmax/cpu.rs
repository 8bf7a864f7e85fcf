//! The logarithm of the softmax on the CPU.

use crate::formats::{Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::scalar::exp_of_nonpositive;
use crate::kernels::softmax::cpu::along;
use sparse_core::element::Float;

/// Along an axis.
pub fn dense<T: Float>(out: &mut Dense<T>, x: DenseView<'_, T>, axis: i64, context: &mut Context) {
    out.assign_dense(x);
    along(out, axis, context, row, row);
}

/// Replaces the scores of one row by the logarithms of their probabilities.
fn row<T: Float>(scores: &mut [T]) {
    let largest = scores.iter().fold(T::neg_infinity(), |largest, &score| largest.max(score));
    let exponential = |score: &T| exp_of_nonpositive(*score - largest);
    let total = scores.iter().map(exponential).fold(T::zero(), |total, part| total + part);
    let log_total = total.ln();
    scores.iter_mut().for_each(|score| *score = (*score - largest) - log_total);
}
