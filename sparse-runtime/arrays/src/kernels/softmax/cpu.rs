//! Softmax on the CPU, its logarithm, its gradient, and the logarithm of sums of exponentials.

use crate::formats::{Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::lookup::Lookup;
use crate::kernels::rows::rows;
use crate::kernels::scalar::exp_of_nonpositive;
use sparse_core::element::Float;

/// The softmax along an axis.
pub fn dense<T: Float>(out: &mut Dense<T>, x: DenseView<'_, T>, axis: i64, context: &mut Context) {
    out.assign_dense(x);
    along(out, axis, context, row, row);
}

/// The logarithm of the softmax along an axis.
pub fn log_softmax_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    axis: i64,
    context: &mut Context,
) {
    out.assign_dense(x);
    along(out, axis, context, log_row, log_row);
}

/// The logarithm of the sum of the exponentials of each row; the largest element is taken out of
/// the sum, so that the largest term is 1. `-inf` for a row without elements.
pub fn logsumexp_dense<T: Float>(out: &mut Dense<T>, x: DenseView<'_, T>, _context: &mut Context) {
    out.reset_for_overwrite([x.shape().n_rows()]);
    for (out, row) in out.values_mut().iter_mut().zip(rows(x)) {
        let largest = row.iter().copied().fold(T::neg_infinity(), T::max);
        let total: f64 = row.iter().map(|&x| (x.widen() - largest.widen()).as_f64().exp()).sum();
        *out = if largest.is_finite() {
            T::narrow(largest.widen() + T::Accumulator::of(total.ln()))
        } else {
            largest
        };
    }
}

/// The gradient along an axis, from the gradient g that arrives and the result y: y · (g - Σ g y).
pub fn gradient_dense_dense<T: Float>(
    out: &mut Dense<T>,
    grad: DenseView<'_, T>,
    y: DenseView<'_, T>,
    axis: i64,
    _context: &mut Context,
) {
    out.assign_dense(grad);
    let Lookup { outer, extent, inner, .. } = Lookup::new(y.shape(), axis, false, false);
    let (grad, y) = (out.values_mut(), y.values());
    for start in
        (0..outer).flat_map(|before| (0..inner).map(move |at| before * extent * inner + at))
    {
        let along = || (0..extent).map(|at| start + at * inner);
        let total: T::Accumulator = along().map(|at| grad[at].widen() * y[at].widen()).sum();
        for at in along() {
            grad[at] = T::narrow(y[at].widen() * (grad[at].widen() - total));
        }
    }
}

/// Replaces the elements along an axis, everywhere in the other axes, by a function of them, which
/// is given for elements that lie side by side and for those that do not.
fn along<T: Float>(
    x: &mut Dense<T>,
    axis: i64,
    context: &mut Context,
    of_row: impl Fn(&mut [T::Accumulator]),
    of_column: impl Fn(&mut [f64]),
) {
    let Lookup { outer, extent, inner, .. } = Lookup::new(x.shape(), axis, false, false);
    let values = x.values_mut();
    if inner == 1 {
        for row in values.chunks_exact_mut(extent.max(1)) {
            T::in_accumulator(row, &mut context.wide, &of_row);
        }
        return;
    }
    let column = &mut context.sums;
    for start in
        (0..outer).flat_map(|before| (0..inner).map(move |at| before * extent * inner + at))
    {
        column.clear();
        column.extend((0..extent).map(|at| values[start + at * inner].as_f64()));
        of_column(column);
        for (at, &value) in column.iter().enumerate() {
            values[start + at * inner] = T::of(value);
        }
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
    // A loop of its own, which becomes vectors; the sum is one score after the other.
    for score in &mut *scores {
        *score = exp_of_nonpositive(*score - largest);
    }
    (largest, scores.iter().fold(T::zero(), |total, &score| total + score))
}

/// Replaces the scores of one row by the logarithms of their probabilities.
fn log_row<T: Float>(scores: &mut [T]) {
    let largest = scores.iter().fold(T::neg_infinity(), |largest, &score| largest.max(score));
    let exponential = |score: &T| exp_of_nonpositive(*score - largest);
    let total = scores.iter().map(exponential).fold(T::zero(), |total, part| total + part);
    let log_total = total.ln();
    scores.iter_mut().for_each(|score| *score = (*score - largest) - log_total);
}
