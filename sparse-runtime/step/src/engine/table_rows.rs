//! The rows of a trained table under a rule, behind one object.
//!
//! Each method is a loop over the rows that a sample names, so that the call by a pointer counts
//! once a sample. A method is compiled for each rule, element type and [kind](UpdateKind) of
//! memory: keep them few and short.

use super::pools::units;
use super::program::Values;
use crate::linear::{is_large, scatter as scatter_rows};
use crate::optimizer::{
    ReadRows as _, RowAccumulator, RowCursor, RowUpdater, RowWeights, UpdateKind,
};
use crate::row_parts::RowPart;
use crate::scatter;
use nnz_arrays::formats::{ColumnId, ColumnIdsView};
use nnz_arrays::with_column_ids;
use nnz_device::simd::{self, Fixed, Runtime, Width};
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float};

/// The rows of a trained table during steps of one call.
pub(crate) trait TableRows<T: Float<Accumulator = T>> {
    /// The rows, and the elements of a row.
    fn shape(&self) -> (usize, usize);

    /// Whether prefetching rows pays: the table is larger than a cache.
    fn is_large(&self) -> bool;

    /// Whether an update only adds to a weight, so that the rows of a sample may be updated in any
    /// number of parts.
    fn only_adds(&self) -> bool;

    /// Whether rows must be caught up before they are read.
    fn catches_up(&self) -> bool;

    /// Prefetches rows. Any ids will do.
    fn prefetch(&mut self, ids: ColumnIdsView<'_>);

    /// Gives rows the steps that they missed. `updated`: each of them is updated in this step.
    ///
    /// # Safety
    ///
    /// The ids are below the rows.
    unsafe fn catch_up(&mut self, ids: ColumnIdsView<'_>, updated: bool);

    /// The weights. Nothing may write them while they are read.
    fn weights(&mut self) -> RowWeights<'_, T>;

    /// Updates each row by its value times `gradient`, which is overwritten. The rows were caught
    /// up in this step.
    ///
    /// # Safety
    ///
    /// The ids are below the rows and distinct, and `gradient` has as many elements as a row.
    unsafe fn update(&mut self, ids: ColumnIdsView<'_>, values: Values<'_, T>, gradient: &mut [T]);

    /// Updates each row by the gradient of an interaction: value · `gradient` · (`sums` - value ·
    /// row), where `sums` is the sum of the rows, each multiplied by its value. `scratch` has as
    /// many elements as a row.
    ///
    /// # Safety
    ///
    /// As [`update`](Self::update), and `sums` and `scratch` have as many elements as a row.
    unsafe fn update_pairs(
        &mut self,
        ids: ColumnIdsView<'_>,
        values: Values<'_, T>,
        sums: &[T],
        scratch: &mut [T],
        gradient: T,
    );

    /// The sums of gradients by rows.
    fn sums(&mut self) -> &mut RowAccumulator;

    /// The same, and the weights.
    fn sums_and_weights(&mut self) -> (&mut RowAccumulator, RowWeights<'_, T>);

    /// Updates each summed row by its sum, and forgets the sums. The rows were caught up in this
    /// step.
    fn apply_sums(&mut self);

    /// Sums and updates parts of the rows, each part on one thread. `sum(place, part, weights)`
    /// sums the gradients of the rows of a part, no row in two parts.
    fn update_parts(&mut self, parts: &mut [RowPart<T>], sum: &SumOfPart<'_, T>);

    /// Goes on to the next of several steps that were begun together.
    fn advance(&mut self);
}

/// Sums the gradients of the rows of a part.
pub(super) type SumOfPart<'f, T> = dyn Fn(usize, &mut RowPart<T>, RowWeights<'_, T>) + Sync + 'f;

impl<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind> TableRows<T>
    for RowUpdater<'_, R, T, K>
{
    fn shape(&self) -> (usize, usize) {
        (self.n_rows(), self.row_size())
    }

    fn is_large(&self) -> bool {
        is_large(self)
    }

    fn only_adds(&self) -> bool {
        K::PLAIN
    }

    fn catches_up(&self) -> bool {
        self.settles()
    }

    fn prefetch(&mut self, ids: ColumnIdsView<'_>) {
        let row_size = self.row_size();
        with_column_ids!(ids, |ids| self.prefetch_each(row_size, ids));
    }

    unsafe fn catch_up(&mut self, ids: ColumnIdsView<'_>, updated: bool) {
        let (cursor, mut settling) = self.split(self.row_size());
        // SAFETY: promised by the caller.
        with_column_ids!(ids, |ids| unsafe { settling.settle_each(cursor, ids, updated) });
    }

    fn weights(&mut self) -> RowWeights<'_, T> {
        self.weights_to_read()
    }

    unsafe fn update(&mut self, ids: ColumnIdsView<'_>, values: Values<'_, T>, gradient: &mut [T]) {
        let size = self.row_size();
        let (cursor, mut settling) = self.split(size);
        with_column_ids!(ids, |ids| {
            // SAFETY: promised by the caller.
            unsafe {
                match (values, size) {
                    (Values::Each(values), 1) => {
                        update_rows(ids, values, cursor, Fixed::<1>, gradient)
                    }
                    (Values::Ones, 1) => {
                        update_rows(ids, units(ids.len()), cursor, Fixed::<1>, gradient)
                    }
                    (Values::Each(values), 16) => {
                        update_rows(ids, values, cursor, Fixed::<16>, gradient)
                    }
                    (Values::Each(values), size) => {
                        update_rows(ids, values, cursor, Runtime(size), gradient)
                    }
                    (Values::Ones, 16) => update_alike(ids, cursor, Fixed::<16>, gradient),
                    (Values::Ones, size) => update_alike(ids, cursor, Runtime(size), gradient),
                }
            }
            settling.mark_unsettled::<K, _>(ids);
        });
    }

    unsafe fn update_pairs(
        &mut self,
        ids: ColumnIdsView<'_>,
        values: Values<'_, T>,
        sums: &[T],
        scratch: &mut [T],
        gradient: T,
    ) {
        let (cursor, mut settling) = self.split(self.row_size());
        with_column_ids!(ids, |ids| {
            simd::wide(
                #[inline(always)]
                || {
                    for (place, id) in ids.iter().enumerate() {
                        let value = match values {
                            Values::Each(values) => values[place],
                            Values::Ones => T::one(),
                        };
                        let share = Factor::<T>::times(value, gradient);
                        // SAFETY: promised by the caller.
                        unsafe {
                            let row = cursor.row(id.at());
                            for ((change, sum), weight) in scratch.iter_mut().zip(sums).zip(row) {
                                *change = share * (*sum - value * *weight);
                            }
                            cursor.update_row_in_eights(id.at(), scratch, |change, _| change);
                        }
                    }
                },
            );
            settling.mark_unsettled::<K, _>(ids);
        });
    }

    fn sums(&mut self) -> &mut RowAccumulator {
        self.sums_mut()
    }

    fn sums_and_weights(&mut self) -> (&mut RowAccumulator, RowWeights<'_, T>) {
        RowUpdater::sums_and_weights(self)
    }

    fn apply_sums(&mut self) {
        self.apply_settled();
    }

    fn update_parts(&mut self, parts: &mut [RowPart<T>], sum: &SumOfPart<'_, T>) {
        scatter::update_parts(self, parts, sum);
    }

    fn advance(&mut self) {
        RowUpdater::advance(self);
    }
}

/// Updates each row by its value times `gradient`.
///
/// # Safety
///
/// As [`TableRows::update`].
#[inline(never)]
unsafe fn update_rows<R, T, V, K, I>(
    ids: &[I],
    values: &[V],
    rows: RowCursor<'_, R, T, K>,
    width: impl Width,
    gradient: &mut [T],
) where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    V: Factor<T>,
    K: UpdateKind,
    I: ColumnId,
{
    simd::wide(
        #[inline(always)]
        // SAFETY: promised by the caller.
        || unsafe {
            let rows = rows.of_size(width.columns());
            match rows.without_options() {
                Some(rows) => scatter_rows(ids, values, rows, width, gradient),
                None => scatter_rows(ids, values, rows, width, gradient),
            }
        },
    );
}

/// Updates each row by `gradient`: element by element, which the compiler vectorises where the
/// gradient is the same for all rows.
///
/// # Safety
///
/// As [`TableRows::update`].
#[inline(never)]
unsafe fn update_alike<R, T, K, I>(
    ids: &[I],
    rows: RowCursor<'_, R, T, K>,
    width: impl Width,
    gradient: &mut [T],
) where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    I: ColumnId,
{
    simd::wide(
        #[inline(always)]
        || {
            let rows = rows.of_size(width.columns());
            width.in_registers(
                gradient,
                #[inline(always)]
                |gradient| {
                    if let Some(factor) = rows.plain_factor() {
                        gradient.iter_mut().for_each(|gradient| *gradient *= factor);
                        for id in ids {
                            // SAFETY: promised by the caller.
                            unsafe { rows.add_row(id.at(), gradient, |change| change) };
                        }
                        return;
                    }
                    for id in ids {
                        // SAFETY: promised by the caller.
                        unsafe { rows.update_row_by(id.at(), gradient, |gradient, _| gradient) };
                    }
                },
            );
        },
    );
}

/// Adds to the sums of rows what [`TableRows::update`] would update them by.
///
/// # Safety
///
/// The ids are below the rows of the sums, and `gradient` has as many elements as a row.
pub(super) unsafe fn add<T: Float<Accumulator = T>>(
    sums: &mut RowAccumulator,
    ids: ColumnIdsView<'_>,
    values: Values<'_, T>,
    gradient: &[T],
) {
    let slots = sums.own_slots();
    with_column_ids!(ids, |ids| {
        let entries = ids.iter().copied();
        // SAFETY: promised by the caller.
        unsafe {
            match values {
                Values::Each(values) => {
                    sums.add_outer::<_, T, T>(slots, entries.zip(values.iter().copied()), gradient)
                }
                Values::Ones => {
                    let units = units(ids.len()).iter().copied();
                    sums.add_outer::<_, T, _>(slots, entries.zip(units), gradient)
                }
            }
        }
    });
}

/// Adds to the sums of rows what [`TableRows::update_pairs`] would update them by, given the
/// weights.
///
/// # Safety
///
/// The ids are below the rows, which nothing writes meanwhile; `of_rows` has as many elements as a
/// row.
pub(super) unsafe fn add_pairs<T: Float<Accumulator = T>>(
    sums: &mut RowAccumulator,
    rows: RowWeights<'_, T>,
    ids: ColumnIdsView<'_>,
    values: Values<'_, T>,
    of_rows: &[T],
    gradient: T,
) {
    let slots = sums.own_slots();
    with_column_ids!(ids, |ids| {
        let entries = ids.iter().enumerate().map(|(place, id)| {
            let value = match values {
                Values::Each(values) => values[place],
                Values::Ones => T::one(),
            };
            (*id, (id.at(), value))
        });
        // SAFETY: promised by the caller.
        unsafe {
            sums.add_each(slots, entries, of_rows.len(), |sums, (id, value)| {
                let share = value * gradient;
                let row = rows.row(id);
                for ((sum, of_rows), weight) in sums.iter_mut().zip(of_rows).zip(row) {
                    *sum += (share * (*of_rows - value * *weight)).as_f64();
                }
            });
        }
    });
}
