//! The terms of row gradients.

use crate::linear::{range_of, row_of};
use nnz_arrays::formats::{ColumnId, CsrView, DenseView};
use nnz_arrays::kernels::embedding_bag;
use nnz_arrays::kernels::parallel::below;
use nnz_arrays::with_column_ids;
use sparse_core::element::{Factor, Float, Id, Stored};
use std::ops::Range;

/// What a gradient of rows is the sum of: [`Product`], [`Bags`], [`Taken`], or [`Both`] of two. No
/// other type can be it: the loops rely on the ids that they are given.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which rows a gradient of `{T}` adds to",
    note = "`graph!` chooses them: `Product`, `Bags`, `Taken`, or `Both` of two"
)]
pub trait Terms<T: Float>: Visited<T> {}

impl<T: Float, A: Visited<T>> Terms<T> for A {}

/// What the loops ask of terms.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which rows a gradient of `{T}` adds to",
    note = "`graph!` chooses them: `Product`, `Bags`, `Taken`, or `Both` of two"
)]
pub trait Visited<T: Float>: Copy + Sync {
    /// True if it is known that no row is named twice.
    fn are_distinct(&self) -> bool;

    /// Gives `visit` the terms of the rows `within`, which are of `row_size` elements, in order.
    /// Ids are of these rows, and what is added has as many elements.
    fn visit(&self, within: &Range<usize>, row_size: usize, visit: &mut impl Visit<T>);

    /// The row of a term, of those at equal distances number `place` of `of`.
    fn sample(&self, place: usize, of: usize) -> usize;

    /// The work of adding them, in about a quarter of a nanosecond, to rows of so many elements.
    fn work(&self, row_size: usize) -> usize;
}

/// What is done with terms.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does nothing with the terms of a gradient of `{T}`",
    note = "the update has a type for each thing that is done with them"
)]
pub trait Visit<T: Float> {
    /// Terms factor · added of some rows.
    fn alike<I: ColumnId>(&mut self, ids: &[I], factor: T, added: &[T]);

    /// Terms value · share · added of some rows, each with its value.
    fn each<I: ColumnId, V: Factor<T>>(&mut self, ids: &[I], values: &[V], share: T, added: &[T]);

    /// Terms of an interaction: value · gradient · (sums - value · row), where `sums` is the sum of
    /// all rows of the sample, each multiplied by its value.
    fn pairs<I: ColumnId, V: Factor<T>>(
        &mut self,
        ids: &[I],
        values: &[V],
        gradient: T,
        sums: &[T],
    );
}

/// Terms of `csrᵀ · added`: each entry of row i of the csr adds its value · `added[i]` to the row
/// that its column names.
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

/// What an entry costs beside the elements of its row.
pub(crate) const WORK_OF_A_TERM: usize = 15;

impl<T: Float<Accumulator = T>, V: Factor<T>> Visited<T> for Product<'_, '_, T, V> {
    #[inline(always)]
    fn are_distinct(&self) -> bool {
        self.csr.n_rows() == 1
    }

    #[inline(always)]
    fn visit(&self, within: &Range<usize>, row_size: usize, visit: &mut impl Visit<T>) {
        let added = self.added.values().chunks_exact(row_size.max(1));
        with_column_ids!(self.csr.columns(), |ids| {
            for (row, added) in (0..self.csr.n_rows()).zip(added) {
                let (ids, values) = run_within(row_of(self.csr, ids, row), self.csr, within);
                visit.each(ids, values, T::one(), added);
            }
        });
    }

    fn sample(&self, place: usize, of: usize) -> usize {
        sample_of(self.csr, place, of)
    }

    fn work(&self, row_size: usize) -> usize {
        self.csr.nnz().saturating_mul(row_size.saturating_add(WORK_OF_A_TERM))
    }
}

impl<T: Float<Accumulator = T>, V: Factor<T>> Visited<T> for Bags<'_, '_, T, V> {
    #[inline(always)]
    fn are_distinct(&self) -> bool {
        self.bags.n_rows() == 1
    }

    #[inline(always)]
    fn visit(&self, within: &Range<usize>, row_size: usize, visit: &mut impl Visit<T>) {
        let added = self.added.values().chunks_exact(row_size.max(1));
        with_column_ids!(self.bags.columns(), |ids| {
            for (bag, added) in (0..self.bags.n_rows()).zip(added) {
                let share =
                    embedding_bag::cpu::share::<T, V>(self.bags, bag, self.mean, self.weighted);
                let (ids, values) = run_within(row_of(self.bags, ids, bag), self.bags, within);
                if self.weighted {
                    visit.each(ids, values, share, added)
                } else {
                    visit.alike(ids, share, added)
                }
            }
        });
    }

    fn sample(&self, place: usize, of: usize) -> usize {
        sample_of(self.bags, place, of)
    }

    fn work(&self, row_size: usize) -> usize {
        self.bags.nnz().saturating_mul(row_size.saturating_add(WORK_OF_A_TERM))
    }
}

impl<T: Float<Accumulator = T>, I: Id> Visited<T> for Taken<'_, '_, T, I> {
    #[inline(always)]
    fn are_distinct(&self) -> bool {
        self.ids.values().len() == 1
    }

    #[inline(always)]
    fn visit(&self, within: &Range<usize>, row_size: usize, visit: &mut impl Visit<T>) {
        let added = self.added.values().chunks_exact(row_size.max(1));
        for (id, added) in self.ids.values().iter().zip(added) {
            // An id that is no position has no row to add to, as one beyond the table.
            if let Some(id) = id.index().filter(|id| within.contains(id)) {
                visit.alike(&[id as u64], T::one(), added);
            }
        }
    }

    fn sample(&self, place: usize, of: usize) -> usize {
        let ids = self.ids.values();
        ids.get(place * ids.len() / of).and_then(|id| id.index()).unwrap_or(0)
    }

    fn work(&self, row_size: usize) -> usize {
        self.ids.values().len().saturating_mul(row_size.saturating_add(WORK_OF_A_TERM))
    }
}

impl<T: Float<Accumulator = T>, A: Visited<T>, B: Visited<T>> Visited<T> for Both<A, B> {
    #[inline(always)]
    fn are_distinct(&self) -> bool {
        false
    }

    #[inline(always)]
    fn visit(&self, within: &Range<usize>, row_size: usize, visit: &mut impl Visit<T>) {
        self.0.visit(within, row_size, visit);
        self.1.visit(within, row_size, visit);
    }

    fn sample(&self, place: usize, of: usize) -> usize {
        // Of either, as often as its terms are more work.
        let (first, second) = (self.0.work(1), self.1.work(1));
        if place * first.saturating_add(second) / of < first {
            self.0.sample(place, of)
        } else {
            self.1.sample(place, of)
        }
    }

    fn work(&self, row_size: usize) -> usize {
        self.0.work(row_size).saturating_add(self.1.work(row_size))
    }
}

/// The entries of a row of `csr` whose columns are within a range: neighbours, since they are
/// sorted.
#[inline(always)]
pub(crate) fn run_within<'a, I: ColumnId, V: Stored>(
    (ids, values): (&'a [I], &'a [V]),
    csr: CsrView<'_, V>,
    within: &Range<usize>,
) -> (&'a [I], &'a [V]) {
    let start = if within.start == 0 { 0 } else { below(ids, within.start) };
    let end = if within.end >= csr.n_cols() { ids.len() } else { below(ids, within.end) };
    let (start, end) = (start.min(end), end);
    (&ids[start..end], &values[start..end])
}

/// The column of an entry of some row; of a row without entries the first.
pub(crate) fn sample_of<V: Stored>(csr: CsrView<'_, V>, place: usize, of: usize) -> usize {
    if csr.n_rows() == 0 {
        return 0;
    }
    let range = range_of(csr, place * csr.n_rows() / of);
    if range.is_empty() {
        0
    } else {
        // Another place of the row each time: a row is sorted. 97 has no divisor in common with
        // most lengths.

        with_column_ids!(csr.columns(), |ids| ids[range.start + place * 97 % range.len()].at())
    }
}
