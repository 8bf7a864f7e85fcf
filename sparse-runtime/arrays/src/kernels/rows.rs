//! Losses: what all of them have in common is the mean over rows, each perhaps with a weight.

use super::Context;
use crate::formats::{ColumnId, CsrView, Dense, DenseView};
use sparse_core::element::Float;

/// The mean over rows of `loss`, a function of the row's number and scores, times the row's weight;
/// summed in `f64` in the order of the rows. 0 for no rows.
#[inline]
pub(super) fn mean_loss<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    weight: Option<DenseView<'_, T>>,
    loss: impl Fn(usize, &[T]) -> T::Accumulator,
) {
    let n_rows = score.shape().n_rows();
    let each = (0..n_rows).filter_map(|row| Some((row, loss(row, score.row(row)?).as_f64())));
    let total: f64 = match weight {
        None => each.map(|(_, loss)| loss).sum(),
        Some(weight) => each.map(|(row, loss)| loss * weight.values()[row].as_f64()).sum(),
    };
    out.reset_for_overwrite([]);
    out.fill(T::of(total / n_rows.max(1) as f64));
}

/// The gradient of the mean: `gradient` replaces the scores of a row by the gradient of the row's
/// loss.
#[inline]
pub(super) fn mean_gradient<T: Float>(
    out: &mut Dense<T>,
    score: DenseView<'_, T>,
    weight: Option<DenseView<'_, T>>,
    context: &mut Context,
    gradient: impl Fn(usize, &mut [T::Accumulator]),
) {
    out.assign_dense(score);
    let share = T::one().widen() / T::Accumulator::of(score.shape().n_rows() as f64);
    let row_size = score.shape().row_size();
    let rows = out.values_mut().chunks_exact_mut(row_size.max(1));
    for (row, scores) in rows.enumerate().take(score.shape().n_rows()) {
        let share = weight.map_or(share, |weight| share * weight.values()[row].widen());
        T::in_accumulator(scores, &mut context.wide, |scores| {
            gradient(row, scores);
            scores.iter_mut().for_each(|score| *score *= share);
        });
    }
}

/// The loss of a row: the sum over its scores of a function of score and label, which also gives
/// its derivative.
#[inline(always)]
pub(super) fn sum<T, A: Float>(
    scores: &[T],
    labels: impl Iterator<Item = T>,
    element: impl Fn(A, A) -> (A, A),
) -> A
where
    T: Float<Accumulator = A>,
{
    let each = scores.iter().zip(labels);
    each.map(|(score, label)| element(score.widen(), label.widen()).0).sum()
}

/// The same, the scores replaced by the derivatives.
#[inline(always)]
pub(super) fn sum_and_gradient<T, A: Float>(
    scores: &mut [A],
    labels: impl Iterator<Item = T>,
    element: impl Fn(A, A) -> (A, A),
) -> A
where
    T: Float<Accumulator = A>,
{
    // To which adding is no work where the compiler sees it.
    let mut total = -A::zero();
    for (score, label) in scores.iter_mut().zip(labels) {
        let (loss, gradient) = element(*score, label.widen());
        total += loss;
        *score = gradient;
    }
    total
}

/// The rows of a dense array, also where they have no elements.
pub(super) fn rows<'a, T: Float>(x: DenseView<'a, T>) -> impl Iterator<Item = &'a [T]> {
    (0..x.shape().n_rows()).filter_map(move |row| x.row(row))
}

/// The elements of a row of a dense array.
#[inline(always)]
pub(super) fn dense_row<'a, T: Float>(
    array: DenseView<'a, T>,
    row: usize,
) -> impl Iterator<Item = T> + Clone + 'a {
    array.row(row).unwrap_or_default().iter().copied()
}

/// The elements of a row of a csr matrix whose column ids are `ids`, what it does not store
/// included.
#[inline(always)]
pub(super) fn csr_row<'a, T: Float, I: ColumnId>(
    matrix: CsrView<'a, T>,
    ids: &'a [I],
    row: usize,
) -> impl Iterator<Item = T> + Clone + 'a {
    let entries = matrix.starts()[row] as usize..matrix.ends()[row] as usize;
    let (ids, values) = (&ids[entries.clone()], &matrix.values()[entries]);
    let mut next = 0;
    (0..matrix.n_cols()).map(move |column| {
        let stored = ids.get(next).is_some_and(|id| id.at() == column);
        if !stored {
            return T::zero();
        }
        next += 1;
        values[next - 1]
    })
}

/// The kernels of a loss that is a sum over the columns of a row: `element`, a function of score
/// and label (and of one number), gives loss and derivative of one score.
///
/// `later` in place of it, and the name of a function of score and label that gives the loss as a
/// [`RowLoss`](crate::kernels::row_loss::RowLoss) with that type: where a part of it can wait.
macro_rules! element_loss {
    ($element:ident $(, $number:ident)?) => {
        $crate::kernels::rows::element_loss! { @all $element $(, $number)? }

        /// [`row`] of one score.
        #[inline(always)]
        pub fn row_of_one<T: Float>(
            score: &mut T::Accumulator,
            label: T
            $(, $number: f64)?
        ) -> T::Accumulator {
            let (loss, gradient) = $element(*score, label.widen() $(, T::Accumulator::of($number))?);
            *score = gradient;
            loss
        }
    };
    ($element:ident, later = $later:ident -> $Later:ident) => {
        $crate::kernels::rows::element_loss! { @all $element }

        /// [`row`] of one score, of which the loss may be computed later.
        #[inline(always)]
        pub fn row_of_one<T: Float>(
            score: &mut T::Accumulator,
            label: T,
        ) -> $Later<T::Accumulator> {
            let (loss, gradient) = $later(*score, label.widen());
            *score = gradient;
            loss
        }
    };
    (@all $element:ident $(, $number:ident)?) => {
        $crate::kernels::rows::element_loss! {
            @dense $element, dense_dense, gradient_dense_dense [] [None] $($number)?
        }
        $crate::kernels::rows::element_loss! {
            @dense $element, dense_dense_dense, gradient_dense_dense_dense [weight] [Some(weight)] $($number)?
        }
        $crate::kernels::rows::element_loss! {
            @csr $element, dense_csr, gradient_dense_csr [] [None] $($number)?
        }
        $crate::kernels::rows::element_loss! {
            @csr $element, dense_csr_dense, gradient_dense_csr_dense [weight] [Some(weight)] $($number)?
        }

        /// The loss of one row; replaces the scores by its gradient.
        #[inline(always)]
        pub fn row<T: Float>(
            scores: &mut [T::Accumulator],
            label: &[T]
            $(, $number: f64)?
        ) -> T::Accumulator {
            $crate::kernels::rows::sum_and_gradient(scores, label.iter().copied(), |score, label| {
                $element(score, label $(, T::Accumulator::of($number))?)
            })
        }
    };
    (@dense $element:ident, $loss:ident, $gradient:ident [$($weight:ident)?] [$given:expr] $($number:ident)?) => {
        /// The mean over the rows, in an array of rank 0.
        pub fn $loss<T: Float>(
            out: &mut Dense<T>,
            score: DenseView<'_, T>,
            label: DenseView<'_, T>,
            $($weight: DenseView<'_, T>,)?
            $($number: f64,)?
            _context: &mut Context,
        ) {
            use $crate::kernels::rows::{dense_row, mean_loss, sum};
            mean_loss(out, score, $given, |row, scores| {
                sum(scores, dense_row(label, row), |s, t| $element(s, t $(, T::Accumulator::of($number))?))
            });
        }

        /// The gradient of the mean with respect to the scores.
        pub fn $gradient<T: Float>(
            out: &mut Dense<T>,
            score: DenseView<'_, T>,
            label: DenseView<'_, T>,
            $($weight: DenseView<'_, T>,)?
            $($number: f64,)?
            context: &mut Context,
        ) {
            use $crate::kernels::rows::{dense_row, mean_gradient, sum_and_gradient};
            mean_gradient(out, score, $given, context, |row, scores| {
                sum_and_gradient(scores, dense_row(label, row), |s, t| $element(s, t $(, T::Accumulator::of($number))?));
            });
        }
    };
    (@csr $element:ident, $loss:ident, $gradient:ident [$($weight:ident)?] [$given:expr] $($number:ident)?) => {
        /// The mean over the rows, in an array of rank 0. A label that is not stored is 0.
        pub fn $loss<T: Float>(
            out: &mut Dense<T>,
            score: DenseView<'_, T>,
            label: CsrView<'_, T>,
            $($weight: DenseView<'_, T>,)?
            $($number: f64,)?
            _context: &mut Context,
        ) {
            use $crate::kernels::rows::{csr_row, mean_loss, sum};
            $crate::with_column_ids!(label.columns(), |ids| mean_loss(out, score, $given, |row, scores| {
                sum(scores, csr_row(label, ids, row), |s, t| $element(s, t $(, T::Accumulator::of($number))?))
            }));
        }

        /// The gradient of the mean with respect to the scores. A label that is not stored is 0.
        pub fn $gradient<T: Float>(
            out: &mut Dense<T>,
            score: DenseView<'_, T>,
            label: CsrView<'_, T>,
            $($weight: DenseView<'_, T>,)?
            $($number: f64,)?
            context: &mut Context,
        ) {
            use $crate::kernels::rows::{csr_row, mean_gradient, sum_and_gradient};
            $crate::with_column_ids!(label.columns(), |ids| mean_gradient(out, score, $given, context, |row, scores| {
                sum_and_gradient(scores, csr_row(label, ids, row), |s, t| $element(s, t $(, T::Accumulator::of($number))?));
            }));
        }
    };
}
pub(super) use element_loss;
