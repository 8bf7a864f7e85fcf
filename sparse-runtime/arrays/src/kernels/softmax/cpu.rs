//! Softmax on the CPU.

use crate::formats::{Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::lookup::Lookup;
use crate::kernels::scalar::exp_of_nonpositive;
use sparse_core::element::Float;

/// The softmax along an axis.
pub fn dense<T: Float>(out: &mut Dense<T>, x: DenseView<'_, T>, axis: i64, context: &mut Context) {
    out.assign_dense(x);
    along(out, axis, context, row, row);
}

/// Replaces the elements along an axis, everywhere in the other axes, by a function of them, which is given for elements that lie side
/// by side and for those that do not.
pub(crate) fn along<T: Float>(
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
