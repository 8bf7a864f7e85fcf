//! The cross entropy of a softmax on the CPU.

use crate::formats::{CsrView, Dense, DenseView, IdsView};
use crate::kernels::Context;
use crate::kernels::rows::{csr_row, dense_row, mean_gradient, mean_loss};
use crate::kernels::scalar::exp_of_nonpositive;
use crate::kernels::softmax::cpu::exponentials;
use crate::with_column_ids;
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
    of_classes(out, score, label, None);
}

/// The same, with weights of the rows.
///
/// # Panics
///
/// If a class id is not below the number of scores of a row.
pub fn dense_ids_dense<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: IdsView<'_>,
    weight: DenseView<'_, T>,
    _context: &mut Context,
) {
    of_classes(out, score, label, Some(weight));
}

/// The mean over the rows for dense targets.
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: DenseView<'_, T>,
    _context: &mut Context,
) {
    mean_loss(out, score, None, |row, scores| row_loss_of_targets(scores, dense_row(label, row)));
}

/// The same, with weights of the rows.
pub fn dense_dense_dense<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: DenseView<'_, T>,
    weight: DenseView<'_, T>,
    _context: &mut Context,
) {
    mean_loss(out, score, Some(weight), |row, scores| {
        row_loss_of_targets(scores, dense_row(label, row))
    });
}

/// The mean over the rows for csr targets; one that is not stored is 0.
pub fn dense_csr<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: CsrView<'_, T>,
    _context: &mut Context,
) {
    of_csr(out, score, label, None);
}

/// The same, with weights of the rows.
pub fn dense_csr_dense<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: CsrView<'_, T>,
    weight: DenseView<'_, T>,
    _context: &mut Context,
) {
    of_csr(out, score, label, Some(weight));
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
    context: &mut Context,
) {
    gradient_of_classes(out, score, label, None, context);
}

/// The same, with weights of the rows.
///
/// # Panics
///
/// If a class id is not below the number of scores of a row.
pub fn gradient_dense_ids_dense<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: IdsView<'_>,
    weight: DenseView<'_, T>,
    context: &mut Context,
) {
    gradient_of_classes(out, score, label, Some(weight), context);
}

/// The gradient of the mean for dense targets with respect to the scores.
pub fn gradient_dense_dense<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: DenseView<'_, T>,
    context: &mut Context,
) {
    gradient_of_dense(out, score, label, None, context);
}

/// The same, with weights of the rows.
pub fn gradient_dense_dense_dense<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: DenseView<'_, T>,
    weight: DenseView<'_, T>,
    context: &mut Context,
) {
    gradient_of_dense(out, score, label, Some(weight), context);
}

/// The gradient of the mean for csr targets with respect to the scores.
pub fn gradient_dense_csr<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: CsrView<'_, T>,
    context: &mut Context,
) {
    gradient_of_csr(out, score, label, None, context);
}

/// The same, with weights of the rows.
pub fn gradient_dense_csr_dense<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: CsrView<'_, T>,
    weight: DenseView<'_, T>,
    context: &mut Context,
) {
    gradient_of_csr(out, score, label, Some(weight), context);
}

fn of_classes<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: IdsView<'_>,
    weight: Option<DenseView<'_, T>>,
) {
    // A negative id is beyond every row of scores, like one that is too large.
    let class = |row| label.get(row).unwrap_or(usize::MAX);
    mean_loss(out, score, weight, |row, scores| row_loss(scores, class(row)));
}

fn gradient_of_classes<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: IdsView<'_>,
    weight: Option<DenseView<'_, T>>,
    context: &mut Context,
) {
    let class = |row| label.get(row).unwrap_or(usize::MAX);
    mean_gradient(out, score, weight, context, |i, scores| {
        row(scores, class(i));
    });
}

fn gradient_of_dense<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: DenseView<'_, T>,
    weight: Option<DenseView<'_, T>>,
    context: &mut Context,
) {
    mean_gradient(out, score, weight, context, |row, scores| {
        row_of_targets(scores, dense_row(label, row));
    });
}

fn of_csr<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: CsrView<'_, T>,
    weight: Option<DenseView<'_, T>>,
) {
    with_column_ids!(label.columns(), |ids| mean_loss(out, score, weight, |row, scores| {
        row_loss_of_targets(scores, csr_row(label, ids, row))
    }));
}

fn gradient_of_csr<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    label: CsrView<'_, T>,
    weight: Option<DenseView<'_, T>>,
    context: &mut Context,
) {
    with_column_ids!(label.columns(), |ids| mean_gradient(
        out,
        score,
        weight,
        context,
        |row, scores| {
            row_of_targets(scores, csr_row(label, ids, row));
        }
    ));
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
pub fn row_loss<T, A: Float>(scores: &[T], label: usize) -> A
where
    T: Float<Accumulator = A>,
{
    let labelled = scores[label].widen();
    let (largest, total) = sum_of_exponentials(scores);
    total.ln() - (labelled - largest)
}

/// The largest score, and the sum of exp(score - largest).
#[inline(always)]
fn sum_of_exponentials<T, A: Float>(scores: &[T]) -> (A, A)
where
    T: Float<Accumulator = A>,
{
    let largest = scores.iter().fold(T::neg_infinity(), |largest, &score| largest.max(score));
    let largest = largest.widen();
    let exponential = |score: &T| exp_of_nonpositive(score.widen() - largest);
    (largest, scores.iter().map(exponential).sum())
}

/// The loss of one row; replaces the scores by its gradient, Σ target · softmax(scores) - target.
#[inline(always)]
pub fn row_of_targets<T, A>(scores: &mut [A], targets: impl Iterator<Item = T> + Clone) -> A
where
    T: Float<Accumulator = A>,
    A: Float<Accumulator = A>,
{
    let targets = targets.map(T::widen);
    let loss = row_loss_of_targets(scores, targets.clone());
    let mass: A = targets.clone().sum();
    let (_, total) = exponentials(scores);
    for (score, target) in scores.iter_mut().zip(targets) {
        *score = mass * (*score / total) - target;
    }
    loss
}

/// The loss of one row: Σ target · (log Σ exp(score) - score).
#[inline(always)]
pub fn row_loss_of_targets<T, A: Float>(scores: &[T], targets: impl Iterator<Item = T> + Clone) -> A
where
    T: Float<Accumulator = A>,
{
    let (largest, total) = sum_of_exponentials(scores);
    let each = scores.iter().zip(targets).map(|(score, target)| {
        // What has no probability costs nothing, whatever its score is.
        let target = target.widen();
        if target.is_zero() { target } else { target * (total.ln() - (score.widen() - largest)) }
    });
    each.sum()
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
    fn a_target_of_one_is_a_class() {
        let scores = [0.3f64, -1.2, 2.5, 0.0];
        let (mut by_class, mut by_targets) = (scores, scores);
        let loss = row_of_targets(&mut by_targets, [0.0, 1.0, 0.0, 0.0].into_iter());
        assert!((loss - row(&mut by_class, 1)).abs() < 1e-15);
        assert_eq!(by_targets, by_class);
        // What is impossible and does not happen is no loss.
        let scores = [0.0f64, f64::NEG_INFINITY];
        assert_eq!(row_loss_of_targets(&scores, [2.0, 0.0].into_iter()), 0.0);
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
