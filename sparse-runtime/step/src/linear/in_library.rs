//! The loops of this module for parameters of one column, compiled with the library: a step calls
//! the row function of its model by a pointer.
//!
//! Of 39 entries a sample the pointer costs some hundredths of the time; what it saves is that no
//! program compiles the loops.

use super::each_row::own_steps;
use super::{Fixed, Scratch, own_step};
use crate::error::Result;
use crate::in_library_by_rule;
use crate::model::RowSteps;
use crate::optimizer::Updater;
use nnz_arrays::formats::CsrView;
use nnz_arrays::kernels::Parallel;
use nnz_arrays::kernels::row_loss::{Losses, RowLoss};
use nnz_arrays::parameter_memory::Table;
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float, Unit};
use std::ops::Range;

/// A row function that sums its losses itself, some of them later: what it returns is 0, or NaN
/// after a loss that is not finite.
type RowFunction<'f, A> = &'f mut dyn FnMut(usize, &mut [A], &mut [A]) -> A;

/// A row function that adds its losses to a sum.
macro_rules! summed {
    ($losses:ident, $row_function:ident) => {
        |row: usize, scores: &mut [T::Accumulator], saved: &mut [T::Accumulator]| {
            let loss = $row_function(row, scores, saved);
            $losses.add(loss);
            if loss.is_finite() { T::zero().widen() } else { T::nan().widen() }
        }
    };
}

/// [`step`](super::step), by the library.
#[inline(always)]
pub(super) fn step<R: UpdateRule, T: Float, V: Factor<T>, L: RowLoss<T::Accumulator>>(
    x: CsrView<'_, V>,
    parameter: usize,
    table: &mut Table<T>,
    updater: &mut Updater<R, T>,
    parallel: Parallel,
    scratch: &mut Scratch<T::Accumulator>,
    mut row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> L,
) -> Result<f64> {
    let mut losses = Losses::new();
    let row_function: RowFunction<'_, _> = &mut summed!(losses, row_function);
    match (x.as_numbers::<T>(), x.as_pattern::<T>()) {
        (Some(x), _) => {
            step_on_numbers(x, parameter, table, updater, parallel, scratch, row_function)
        }
        (None, Some(x)) => {
            step_on_pattern(x, parameter, table, updater, parallel, scratch, row_function)
        }
        // A factor is one of them.
        (None, None) => Ok(()),
    }?;
    Ok(losses.finish().0 / x.n_rows().max(1) as f64)
}

/// [`steps`](super::steps), by the library.
#[inline(always)]
pub(super) fn steps<R: UpdateRule, T: Float, V: Factor<T>, L: RowLoss<T::Accumulator>>(
    x: CsrView<'_, V>,
    range: Range<usize>,
    parameter: usize,
    table: &mut Table<T>,
    updater: &mut Updater<R, T>,
    scratch: &mut Scratch<T::Accumulator>,
    mut row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> L,
) -> Result<RowSteps> {
    let mut losses = Losses::new();
    let row_function: RowFunction<'_, _> = &mut summed!(losses, row_function);
    let mut steps = match (x.as_numbers::<T>(), x.as_pattern::<T>()) {
        (Some(x), _) => {
            steps_on_numbers(x, range, parameter, table, updater, scratch, row_function)?
        }
        (None, Some(x)) => {
            steps_on_pattern(x, range, parameter, table, updater, scratch, row_function)?
        }
        // A factor is one of them.
        (None, None) => RowSteps::default(),
    };
    (steps.loss_sum, steps.last_loss) = losses.finish();
    Ok(steps)
}

/// A function on values of a type, by the instances that the library has for the usual rules.
macro_rules! by_instances {
    ($name:ident = $of:ident, $V:ty, ($($argument:ident: $type:ty),* $(,)?) -> $result:ty) => {
        fn $name<R: UpdateRule, T: Float>(
            x: CsrView<'_, $V>,
            $($argument: $type),*
        ) -> $result {
            in_library_by_rule!(<R, T> $of::<R, T, $V> => (
                x: CsrView<'_, $V>,
                $($argument: $type),*
            ) -> $result)
        }
    };
}

/// [`by_instances`] on numbers and on a pattern.
macro_rules! on_both {
    ($numbers:ident, $pattern:ident = $of:ident, $arguments:tt -> $result:ty) => {
        by_instances!($numbers = $of, T, $arguments -> $result);
        by_instances!($pattern = $of, Unit, $arguments -> $result);
    };
}

on_both!(step_on_numbers, step_on_pattern = step_of, (
    parameter: usize,
    table: &mut Table<T>,
    updater: &mut Updater<R, T>,
    parallel: Parallel,
    scratch: &mut Scratch<<T as Float>::Accumulator>,
    row_function: RowFunction<'_, <T as Float>::Accumulator>,
) -> Result<()>);

on_both!(steps_on_numbers, steps_on_pattern = steps_of, (
    range: Range<usize>,
    parameter: usize,
    table: &mut Table<T>,
    updater: &mut Updater<R, T>,
    scratch: &mut Scratch<<T as Float>::Accumulator>,
    row_function: RowFunction<'_, <T as Float>::Accumulator>,
) -> Result<RowSteps>);

fn step_of<R: UpdateRule, T: Float, V: Factor<T>>(
    x: CsrView<'_, V>,
    parameter: usize,
    table: &mut Table<T>,
    updater: &mut Updater<R, T>,
    parallel: Parallel,
    scratch: &mut Scratch<T::Accumulator>,
    row_function: RowFunction<'_, T::Accumulator>,
) -> Result<()> {
    let width = Fixed::<1>;
    own_step(x, parameter, table, updater, width, parallel, scratch, row_function).map(|_| ())
}

fn steps_of<R: UpdateRule, T: Float, V: Factor<T>>(
    x: CsrView<'_, V>,
    range: Range<usize>,
    parameter: usize,
    table: &mut Table<T>,
    updater: &mut Updater<R, T>,
    scratch: &mut Scratch<T::Accumulator>,
    row_function: RowFunction<'_, T::Accumulator>,
) -> Result<RowSteps> {
    let (width, kept) = (Fixed::<1>, &mut ());
    let row_function = |row: usize, scores: &mut [_], saved: &mut [_], _: &mut ()| {
        row_function(row, scores, saved)
    };
    own_steps(x, range, parameter, table, updater, width, scratch, kept, row_function)
}
