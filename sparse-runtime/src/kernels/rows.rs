//! Losses: what all of them have in common is the mean over rows.

use crate::formats::{Dense, DenseView};
use sparse_core::element::Float;

/// The mean over rows of a function of a row of scores and its label, summed in `f64` in the order of the rows. 0 for no
/// rows.
pub(super) fn mean_loss<'a, T: Float, L>(
    out: &mut Dense<T>,
    score: DenseView<'a, T>,
    labels: impl Iterator<Item = L>,
    loss: impl Fn(&'a [T], L) -> T,
) {
    let n_rows = score.shape().n_rows();
    let total: f64 =
        rows(score).zip(labels).map(|(scores, label)| loss(scores, label).as_f64()).sum();
    out.reset_for_overwrite([]);
    out.fill(T::of(total / n_rows.max(1) as f64));
}

/// The gradient of the mean: `gradient` replaces a row of scores by the gradient of the row's loss.
pub(super) fn mean_gradient<T: Float, L>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    labels: impl Iterator<Item = L>,
    gradient: impl Fn(&mut [T], L),
) {
    out.assign_dense(score);
    let share = T::one() / T::of(score.shape().n_rows() as f64);
    let row_size = score.shape().row_size();
    for (scores, label) in out.values_mut().chunks_exact_mut(row_size.max(1)).zip(labels) {
        gradient(scores, label);
        scores.iter_mut().for_each(|score| *score *= share);
    }
}

/// The rows of a dense array, also where they have no elements.
pub(super) fn rows<'a, T: Float>(x: DenseView<'a, T>) -> impl Iterator<Item = &'a [T]> {
    (0..x.shape().n_rows()).filter_map(move |row| x.row(row))
}
