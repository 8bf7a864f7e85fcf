//! Updates by row gradients that are never made, in steps that are not one loop.
//!
//! A `row_sparse` gradient is a sum of [`Terms`], table rows that the batch names. If each is named
//! once, as in a batch of one sample, it is updated at once. Otherwise the terms of a row are
//! summed in their order, through the persistent map from rows to slots of a [`RowAccumulator`],
//! and each touched row is updated in the order of the first touch. No ids are sorted, and no
//! gradient is made. In a large batch each of several threads does so for its own rows, neighbours
//! in the table.

mod terms;
#[cfg(test)]
mod tests;

pub use self::terms::{Bags, Both, Product, Taken, Terms};
pub(crate) use self::terms::{Visit, Visited, WORK_OF_A_TERM, run_within, sample_of};

use crate::autotune::Stage;
use crate::column_partition::{Bounds, RowPart};
use crate::error::Result;
use crate::linear::{Fixed, Runtime, Scratch, Width, entries};
use crate::optimizer::{
    General, Plain, ReadRows as _, RowAccumulator, RowUpdater, RowWeights, UpdateKind, Updater,
    term,
};
use crate::with_rows;
use nnz_arrays::formats::ColumnId;
use nnz_arrays::kernels::Parallel;
use nnz_arrays::parameter_memory::Table;
use nnz_device::simd;
use nnz_device::thread_pool;
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float};
use std::ops::Range;

/// The update of a parameter, whose number is `parameter`, by the gradient that is the sum of
/// `terms`. A row that the table does not have is left out. O(elements of the terms + rows touched
/// · cost of the rule). `parallel` threads share the work of a large batch; the bits do not depend
/// on it.
///
/// # Errors
///
/// As [`Updater::rows`].
#[inline]
pub fn update<R: UpdateRule, T: Float<Accumulator = T>>(
    parameter: usize,
    table: &mut Table<T>,
    updater: &mut Updater<R, T>,
    terms: impl Terms<T>,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
) -> Result<()> {
    with_rows!(R, T; *updater, [parameter => table], |[rows]| {
        apply(rows, terms, parallel, scratch, parameter);
        Ok(())
    })
}

/// [`update`] of values without their table: of a parameter that the forward pass reads as a whole.
///
/// # Errors
///
/// As [`Updater::rows`].
#[inline]
pub fn update_values<R: UpdateRule, T: Float<Accumulator = T>>(
    parameter: usize,
    values: &mut [T],
    updater: &mut Updater<R, T>,
    terms: impl Terms<T>,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
) -> Result<()> {
    if Updater::<R, T>::OPTIONAL_STATE && updater.is_plain(parameter) {
        apply(updater.rows_as::<Plain>(parameter, values)?, terms, parallel, scratch, parameter);
    } else {
        apply(updater.rows_as::<General>(parameter, values)?, terms, parallel, scratch, parameter);
    }
    Ok(())
}

fn apply<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind>(
    rows: RowUpdater<'_, R, T, K>,
    terms: impl Terms<T>,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    parameter: usize,
) {
    let work = if terms.are_distinct() { 0 } else { terms.work(rows.row_size()) };
    let begun = scratch.autotune.begin(Stage::Update(parameter), parallel, work);
    let (n_parts, memory) = (begun.n_parts, scratch.of_parameter(parameter));
    // Loops over rows of the usual sizes are straight code, where there are many terms.
    match rows.row_size() {
        1 if terms.are_distinct() => update_once(rows, terms, Fixed::<1>),
        size if terms.are_distinct() => update_once(rows, terms, Runtime(size)),
        1 => of_size(rows, terms, Fixed::<1>, n_parts, memory),
        8 => of_size(rows, terms, Fixed::<8>, n_parts, memory),
        16 => of_size(rows, terms, Fixed::<16>, n_parts, memory),
        32 => of_size(rows, terms, Fixed::<32>, n_parts, memory),
        size => of_size(rows, terms, Runtime(size), n_parts, memory),
    }
    scratch.autotune.end(begun);
}

fn of_size<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind>(
    mut rows: RowUpdater<'_, R, T, K>,
    terms: impl Terms<T>,
    width: impl Width,
    n_parts: usize,
    memory: (&mut Vec<T>, &mut Vec<RowPart<T>>),
) {
    let (scratch, parts) = memory;
    let whole = 0..rows.n_rows();
    let sample = |place, of| terms.sample(place, of);
    let bounds = (n_parts > 1).then(|| Bounds::of(n_parts, whole.end, &sample));
    match bounds.filter(|bounds| bounds.are_even) {
        None => {
            let (sums, weights) = rows.sums_and_weights();
            sum(sums, terms, weights, &whole, width, scratch);
            rows.apply_accumulated();
        }
        Some(bounds) => in_parts(n_parts, &bounds, &mut rows, terms, width, parts),
    }
    rows.finish();
}

/// Updates each row that terms name, which do so once.
fn update_once<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind>(
    mut rows: RowUpdater<'_, R, T, K>,
    terms: impl Terms<T>,
    width: impl Width,
) {
    let whole = 0..rows.n_rows();
    simd::wide(
        #[inline(always)]
        || terms.visit(&whole, width.columns(), &mut Once { rows: &mut rows, width }),
    );
    rows.finish();
}

/// As many parts as there are, each the work of one thread.
fn in_parts<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind>(
    n_parts: usize,
    bounds: &Bounds,
    rows: &mut RowUpdater<'_, R, T, K>,
    terms: impl Terms<T>,
    width: impl Width,
    parts: &mut Vec<RowPart<T>>,
) {
    RowPart::resize(parts, n_parts, rows.n_rows(), width.columns());
    update_parts(
        rows,
        parts,
        #[inline(always)]
        |place, part, weights| {
            let own = bounds.of_part(place);
            sum(&mut part.sums, terms, weights, &own, width, &mut part.scratch);
        },
    );
}

/// Sums and updates parts of the rows, each part on one thread. `sum(place, part, weights)` sums
/// the gradients of the rows of a part, no row in two parts.
pub(crate) fn update_parts<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind>(
    rows: &mut RowUpdater<'_, R, T, K>,
    parts: &mut [RowPart<T>],
    sum: impl Fn(usize, &mut RowPart<T>, RowWeights<'_, T>) + Sync,
) {
    let (size, settles) = (rows.row_size(), rows.settles());
    let shared = rows.shared(size);
    thread_pool::each(parts, |place, part| {
        sum(place, part, shared.weights());
        let RowPart { sums, first_settled, .. } = part;
        first_settled.clear();
        // SAFETY: the sums are of rows of the parameter, as many elements as its rows have, and
        // each row is of one part.
        unsafe {
            if settles {
                sums.rows().iter().for_each(|row| shared.settle(*row, first_settled));
            }
            shared.update_summed(sums);
        }
        sums.clear();
    });
    for part in parts {
        rows.add_touched(&part.first_settled);
    }
}

/// The sums of the terms of some rows, of a size that is compiled for where it is a usual one.
pub(crate) fn sum_of_size<T: Float<Accumulator = T>>(
    sums: &mut RowAccumulator,
    terms: impl Terms<T>,
    weights: RowWeights<'_, T>,
    within: &Range<usize>,
    row_size: usize,
    scratch: &mut Vec<T>,
) {
    match row_size {
        1 => sum(sums, terms, weights, within, Fixed::<1>, scratch),
        8 => sum(sums, terms, weights, within, Fixed::<8>, scratch),
        16 => sum(sums, terms, weights, within, Fixed::<16>, scratch),
        32 => sum(sums, terms, weights, within, Fixed::<32>, scratch),
        size => sum(sums, terms, weights, within, Runtime(size), scratch),
    }
}

/// Sums the terms of some rows.
#[inline(never)]
fn sum<T: Float<Accumulator = T>>(
    sums: &mut RowAccumulator,
    terms: impl Terms<T>,
    weights: RowWeights<'_, T>,
    within: &Range<usize>,
    width: impl Width,
    scratch: &mut Vec<T>,
) {
    simd::wide(
        #[inline(always)]
        || terms.visit(within, width.columns(), &mut Sum { sums, weights, width, scratch }),
    );
}

/// Updates each row that is named, once.
struct Once<'r, 'a, R: UpdateRule, T: Float, K: UpdateKind, W> {
    rows: &'r mut RowUpdater<'a, R, T, K>,
    width: W,
}

impl<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind, W: Width> Once<'_, '_, R, T, K, W> {
    #[inline(always)]
    fn update(&mut self, row: usize, factor: T, added: &[T]) {
        debug_assert!(row < self.rows.n_rows() && added.len() == self.width.columns());
        // SAFETY: terms are of rows that there are, and as long as these.
        unsafe {
            self.rows.settle_unchecked(row);
            self.rows.update_row_by(row, added, |added, _| factor * added);
        }
    }
}

impl<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind, W: Width> Visit<T>
    for Once<'_, '_, R, T, K, W>
{
    #[inline(always)]
    fn alike<I: ColumnId>(&mut self, ids: &[I], factor: T, added: &[T]) {
        ids.iter().for_each(|id| self.update(id.at(), factor, added));
    }

    #[inline(always)]
    fn each<I: ColumnId, V: Factor<T>>(&mut self, ids: &[I], values: &[V], share: T, added: &[T]) {
        let entries = ids.iter().zip(values);
        entries.for_each(|(id, value)| self.update(id.at(), value.times(share), added));
    }

    #[inline(always)]
    fn pairs<I: ColumnId, V: Factor<T>>(
        &mut self,
        ids: &[I],
        values: &[V],
        gradient: T,
        sums: &[T],
    ) {
        for (id, value) in ids.iter().zip(values) {
            let share = value.times(gradient);
            // SAFETY: as in `update`.
            unsafe {
                self.rows.settle_unchecked(id.at());
                self.rows.update_row_by(id.at(), sums, |sum, weight| {
                    share * (sum - value.times(weight))
                });
            }
        }
    }
}

/// Sums terms by rows. The weights that terms depend on were caught up in this step.
struct Sum<'s, T, W> {
    sums: &'s mut RowAccumulator,
    weights: RowWeights<'s, T>,
    width: W,
    scratch: &'s mut Vec<T>,
}

impl<T: Float<Accumulator = T>, W: Width> Visit<T> for Sum<'_, T, W> {
    #[inline(always)]
    fn alike<I: ColumnId>(&mut self, ids: &[I], factor: T, added: &[T]) {
        let (sums, size) = (&mut *self.sums, self.width.columns());
        let slots = sums.own_slots();
        self.width.with_rows(
            self.scratch,
            #[inline(always)]
            |terms, _| {
                for (term, added) in terms.iter_mut().zip(added) {
                    *term = factor * *added;
                }
                // SAFETY: terms are of rows that there are, and as long as these.
                unsafe {
                    sums.add_each(slots, ids.iter().map(|id| (*id, ())), size, |sums, ()| {
                        sums.iter_mut().zip(&*terms).for_each(|(sum, term)| *sum += term.as_f64());
                    });
                }
            },
        );
    }

    #[inline(always)]
    fn each<I: ColumnId, V: Factor<T>>(&mut self, ids: &[I], values: &[V], share: T, added: &[T]) {
        let (sums, size) = (&mut *self.sums, self.width.columns());
        let slots = sums.own_slots();
        self.width.with_rows(
            self.scratch,
            #[inline(always)]
            |terms, _| {
                for (term, added) in terms.iter_mut().zip(added) {
                    *term = share * *added;
                }
                // SAFETY: as above.
                unsafe {
                    sums.add_each(slots, entries(ids, values), size, |sums, value| {
                        let terms = sums.iter_mut().zip(&*terms);
                        terms.for_each(|(sum, by_row)| *sum += term::<T, V>(value, *by_row));
                    });
                }
            },
        );
    }

    #[inline(always)]
    fn pairs<I: ColumnId, V: Factor<T>>(
        &mut self,
        ids: &[I],
        values: &[V],
        gradient: T,
        sums_of_sample: &[T],
    ) {
        let (sums, size) = (&mut *self.sums, self.width.columns());
        let (slots, weights) = (sums.own_slots(), self.weights.of_size(size));
        let entries = ids.iter().zip(values).map(|(id, value)| (*id, (*id, *value)));
        // SAFETY: as above; nothing writes the weights before all terms are summed.
        unsafe {
            sums.add_each(slots, entries, size, |sums, (id, value): (I, V)| {
                let share = value.times(gradient);
                let terms = sums_of_sample.iter().zip(weights.row(id.at()));
                for (sum, (of_sample, weight)) in sums.iter_mut().zip(terms) {
                    *sum += (share * (*of_sample - value.times(*weight))).as_f64();
                }
            });
        }
    }
}
