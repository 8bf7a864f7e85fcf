//! Gradients of rows, straight into the update: what a step does that is not one loop.
//!
//! A `row_sparse` gradient is a sum of [`Terms`], rows that the batch names. Where each is named once, as in a batch of one
//! row, it is updated at once; else the terms of a row are summed in their order, through the persistent map from rows to
//! slots of a [`RowAccumulator`](crate::optimizer::RowAccumulator), and each row touched is updated in the order of the
//! first touch. No ids are sorted, and no gradient is made.

use crate::error::Result;
use crate::formats::{ColumnId, CsrView, DenseView};
use crate::kernels::embedding_bag;
use crate::lanes;
use crate::optimizer::{General, Plain, RowUpdater, UpdateKind, Updater};
use crate::table::Table;
use crate::{with_column_ids, with_rows};
use sparse_core::element::{Factor, Float, Id, Stored};
use sparse_core::update_rules::UpdateRule;

/// What a gradient of rows is the sum of.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which rows a gradient of `{T}` adds to",
    note = "`graph!` chooses them: `Product`, `Bags`, `Taken`, or `Both` of two"
)]
pub trait Terms<T: Float>: Copy {
    /// True if it is known that no row is named twice.
    fn are_distinct(&self) -> bool;

    /// Calls `visit(row, factor, added)` for each term factor · added of a row, whose size is `row_size`, in order.
    fn for_each(&self, row_size: usize, visit: impl FnMut(usize, T, &[T]));
}

/// Terms of `csrᵀ · added`: each entry of row i of the csr adds its value · `added[i]` to the row that its column names.
#[derive(Clone, Copy, Debug)]
pub struct Product<'m, 'a, T: Float, V: Stored = T> {
    /// The csr.
    pub csr: CsrView<'m, V>,
    /// A row for each row of it.
    pub added: DenseView<'a, T>,
}

/// Terms of the gradient of bags: each entry of bag i adds its share of `added[i]`.
#[derive(Clone, Copy, Debug)]
pub struct Bags<'m, 'a, T: Float, V: Stored = T> {
    /// The bags.
    pub bags: CsrView<'m, V>,
    /// A row for each bag.
    pub added: DenseView<'a, T>,
    /// Whether they are means of rows.
    pub mean: bool,
    /// Whether rows are weighted by the values of the csr.
    pub weighted: bool,
}

/// Terms of the gradient of rows taken by ids: id i adds row i of `added`.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'m, 'a, T: Float, I: Id> {
    /// The ids.
    pub ids: DenseView<'m, I>,
    /// A row for each id.
    pub added: DenseView<'a, T>,
}

/// The terms of one, then those of the other: of a parameter that is read twice.
#[derive(Clone, Copy, Debug)]
pub struct Both<A, B>(pub A, pub B);

impl<T: Float<Accumulator = T>, V: Factor<T>> Terms<T> for Product<'_, '_, T, V> {
    #[inline(always)]
    fn are_distinct(&self) -> bool {
        self.csr.n_rows() == 1
    }

    #[inline(always)]
    fn for_each(&self, row_size: usize, mut visit: impl FnMut(usize, T, &[T])) {
        let (starts, ends, values) = (self.csr.starts(), self.csr.ends(), self.csr.values());
        let added = self.added.values().chunks_exact(row_size.max(1));
        with_column_ids!(self.csr.columns(), |ids| {
            for ((&start, &end), added) in starts.iter().zip(ends).zip(added) {
                let range = start as usize..end as usize;
                for (id, &value) in ids[range.clone()].iter().zip(&values[range]) {
                    visit(id.at(), value.number(), added);
                }
            }
        });
    }
}

impl<T: Float<Accumulator = T>, V: Factor<T>> Terms<T> for Bags<'_, '_, T, V> {
    #[inline(always)]
    fn are_distinct(&self) -> bool {
        self.bags.n_rows() == 1
    }

    #[inline(always)]
    fn for_each(&self, row_size: usize, mut visit: impl FnMut(usize, T, &[T])) {
        let (starts, ends, values) = (self.bags.starts(), self.bags.ends(), self.bags.values());
        let added = self.added.values().chunks_exact(row_size.max(1));
        with_column_ids!(self.bags.columns(), |ids| {
            for (bag, added) in added.enumerate() {
                let share =
                    embedding_bag::cpu::share::<T, V>(self.bags, bag, self.mean, self.weighted);
                let range = starts[bag] as usize..ends[bag] as usize;
                for (id, &value) in ids[range.clone()].iter().zip(&values[range]) {
                    visit(id.at(), if self.weighted { value.times(share) } else { share }, added);
                }
            }
        });
    }
}

impl<T: Float<Accumulator = T>, I: Id> Terms<T> for Taken<'_, '_, T, I> {
    #[inline(always)]
    fn are_distinct(&self) -> bool {
        self.ids.values().len() == 1
    }

    #[inline(always)]
    fn for_each(&self, row_size: usize, mut visit: impl FnMut(usize, T, &[T])) {
        let added = self.added.values().chunks_exact(row_size.max(1));
        for (id, added) in self.ids.values().iter().zip(added) {
            // An id that is no position has no row to add to, as one beyond the table.
            visit(id.index().unwrap_or(usize::MAX), T::one(), added);
        }
    }
}

impl<T: Float<Accumulator = T>, A: Terms<T>, B: Terms<T>> Terms<T> for Both<A, B> {
    #[inline(always)]
    fn are_distinct(&self) -> bool {
        false
    }

    #[inline(always)]
    fn for_each(&self, row_size: usize, mut visit: impl FnMut(usize, T, &[T])) {
        self.0.for_each(row_size, &mut visit);
        self.1.for_each(row_size, &mut visit);
    }
}

/// The update of a parameter, whose number is `parameter`, by the gradient that is the sum of `terms`. A row that the table
/// does not have is left out. O(elements of the terms + rows touched · cost of the rule).
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
) -> Result<()> {
    with_rows!(R, T; *updater, [parameter => table], |[rows]| {
        apply(rows, terms);
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
) -> Result<()> {
    if Updater::<R, T>::OPTIONAL_STATE && updater.is_plain(parameter) {
        apply(updater.rows_as::<Plain>(parameter, values)?, terms);
    } else {
        apply(updater.rows_as::<General>(parameter, values)?, terms);
    }
    Ok(())
}

fn apply<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind>(
    rows: RowUpdater<'_, R, T, K>,
    terms: impl Terms<T>,
) {
    lanes::wide(
        #[inline(always)]
        || apply_loops(rows, terms),
    );
}

/// The loops, to be compiled for vectors.
#[inline(always)]
fn apply_loops<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind>(
    mut rows: RowUpdater<'_, R, T, K>,
    terms: impl Terms<T>,
) {
    let (n_rows, row_size) = (rows.n_rows(), rows.row_size());
    // Whoever only adds can do so term by term.
    if K::PLAIN || terms.are_distinct() {
        terms.for_each(
            row_size,
            #[inline(always)]
            |row, factor, added| {
                if row < n_rows && added.len() == row_size {
                    // SAFETY: compared just now.
                    unsafe {
                        rows.settle_unchecked(row);
                        rows.update_row_by(row, added, |added, _| factor * added);
                    }
                }
            },
        );
    } else {
        terms.for_each(
            row_size,
            #[inline(always)]
            |row, factor, added| {
                if row < n_rows {
                    // SAFETY: compared just now.
                    let sums = unsafe { rows.accumulate_unchecked(row) };
                    for (sum, x) in sums.iter_mut().zip(added) {
                        *sum += factor * *x;
                    }
                }
            },
        );
        rows.apply_accumulated();
    }
    rows.finish();
}
