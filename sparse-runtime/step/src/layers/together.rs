//! Several reads of one table. A table row that more than one of them names has one update, by the
//! sum of its gradients.

use super::reads::{Bags, RowReads, Taken};
use super::shared::SharedReads;
use super::still::Stopped;
use crate::error::Result;
use crate::linear::{entries, row_of};
use crate::optimizer::{RowUpdater, RowWeights, UpdateKind, term};
use nnz_arrays::formats::{ColumnId, ColumnIdsView};
use nnz_arrays::with_column_ids;
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float, Id};

/// Reads that are all of table `TABLE`, with rows of `S` elements: one, or pairs of pairs.
#[derive(Clone, Copy, Debug)]
pub struct Together<L, const TABLE: usize, const S: usize> {
    /// The reads.
    pub reads: L,
}

/// A read that says which rows a row of data names.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which rows of a table of `{T}` it names",
    note = "`graph!` chooses reads: `Product`, `Bags` or `Taken`"
)]
pub trait NamesRows<T: Float<Accumulator = T>>: RowReads<T> {
    /// Does something with the ids of the rows that a row of data names, each once and ascending.
    fn with_ids<Q>(&self, row: usize, look: impl FnOnce(ColumnIdsView<'_>) -> Q) -> Q;

    /// Adds what the rows that a row of data names have of a gradient to their sums.
    ///
    /// # Safety
    ///
    /// The tables have passed [`check`](RowReads::check), and the row was [read](RowReads::read).
    unsafe fn sum<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
        gradients: Self::Gradients,
    );
}

/// Reads of one table: one of them, or a pair. Pairs of pairs are as deep as the logarithm of the
/// number of reads.
#[diagnostic::on_unimplemented(
    message = "`{Self}` are no reads of a table of `{T}`",
    note = "`graph!` writes them: `((first, second), third)`"
)]
pub trait ReadsTogether<T: Float<Accumulator = T>>: RowReads<T> {
    /// Whether any of them names one of some rows.
    fn names_any(&self, row: usize, ids: ColumnIdsView<'_>) -> bool;

    /// Whether any of them names a row that one of `others` names.
    fn meet<O: ReadsTogether<T>>(&self, row: usize, others: &O) -> bool;

    /// Whether no two of them name the same row.
    fn are_apart(&self, row: usize) -> bool;

    /// Adds their gradients to the sums of rows.
    ///
    /// # Safety
    ///
    /// As [`NamesRows::sum`].
    unsafe fn sum_all<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
        gradients: Self::Gradients,
    );
}

/// Whether two ascending lists have an id in common. O(their lengths).
#[inline(always)]
fn have_common(left: ColumnIdsView<'_>, right: ColumnIdsView<'_>) -> bool {
    fn have<I: ColumnId, J: ColumnId>(mut left: &[I], mut right: &[J]) -> bool {
        while let ([first, of_left @ ..], [second, of_right @ ..]) = (left, right) {
            match first.at().cmp(&second.at()) {
                std::cmp::Ordering::Less => left = of_left,
                std::cmp::Ordering::Greater => right = of_right,
                std::cmp::Ordering::Equal => return true,
            }
        }
        false
    }
    with_column_ids!(left, |left| with_column_ids!(right, |right| have(left, right)))
}

impl<T, V, const TABLE: usize, const S: usize, const MEAN: bool, const WEIGHTED: bool> NamesRows<T>
    for Bags<'_, V, TABLE, S, MEAN, WEIGHTED>
where
    T: Float<Accumulator = T>,
    V: Factor<T>,
{
    #[inline(always)]
    fn with_ids<Q>(&self, row: usize, look: impl FnOnce(ColumnIdsView<'_>) -> Q) -> Q {
        look(match self.csr.columns() {
            ColumnIdsView::U32(ids) => ColumnIdsView::U32(row_of(self.csr, ids, row).0),
            ColumnIdsView::U64(ids) => ColumnIdsView::U64(row_of(self.csr, ids, row).0),
        })
    }

    #[inline(always)]
    unsafe fn sum<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
        mut gradients: [T; S],
    ) {
        self.scale(row, &mut gradients);
        let sums = tables[TABLE].sums_mut();
        let slots = sums.own_slots();
        with_column_ids!(self.csr.columns(), |ids| {
            let (ids, values) = row_of(self.csr, ids, row);
            // SAFETY: a view's columns are below its `n_cols`, which `check` compared with the
            // rows, of `S` elements.
            unsafe {
                match WEIGHTED {
                    true => sums.add_each(slots, entries(ids, values), S, |sums, value| {
                        let gradients = sums.iter_mut().zip(&gradients);
                        gradients
                            .for_each(|(sum, gradient)| *sum += term::<T, V>(value, *gradient));
                    }),
                    false => sums.add_each(slots, ids.iter().map(|id| (*id, ())), S, |sums, ()| {
                        let gradients = sums.iter_mut().zip(&gradients);
                        gradients.for_each(|(sum, gradient)| *sum += gradient.as_f64());
                    }),
                }
            }
        });
    }
}

impl<T, I: Id, const TABLE: usize, const S: usize> NamesRows<T> for Taken<'_, I, TABLE, S>
where
    T: Float<Accumulator = T>,
{
    #[inline(always)]
    fn with_ids<Q>(&self, row: usize, look: impl FnOnce(ColumnIdsView<'_>) -> Q) -> Q {
        look(ColumnIdsView::U64(&[self.id(row) as u64]))
    }

    #[inline(always)]
    unsafe fn sum<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
        gradients: [T; S],
    ) {
        // SAFETY: `read` has compared the id.
        let sums = unsafe { tables[TABLE].sums_mut().row_mut_unchecked(self.id(row)) };
        sums.iter_mut().zip(gradients).for_each(|(sum, gradient)| *sum += gradient.as_f64());
    }
}

/// The methods of one read.
macro_rules! one_read {
    () => {
        #[inline(always)]
        fn names_any(&self, row: usize, ids: ColumnIdsView<'_>) -> bool {
            NamesRows::<T>::with_ids(self, row, |own| have_common(own, ids))
        }

        #[inline(always)]
        fn meet<O: ReadsTogether<T>>(&self, row: usize, others: &O) -> bool {
            NamesRows::<T>::with_ids(self, row, |own| others.names_any(row, own))
        }

        #[inline(always)]
        fn are_apart(&self, _: usize) -> bool {
            true
        }

        #[inline(always)]
        unsafe fn sum_all<R: UpdateRule, K: UpdateKind>(
            &self,
            row: usize,
            tables: &mut [RowUpdater<'_, R, T, K>],
            gradients: Self::Gradients,
        ) {
            // SAFETY: promised by the caller.
            unsafe { self.sum(row, tables, gradients) }
        }
    };
}

impl<T, V, const TABLE: usize, const S: usize, const MEAN: bool, const WEIGHTED: bool>
    ReadsTogether<T> for Bags<'_, V, TABLE, S, MEAN, WEIGHTED>
where
    T: Float<Accumulator = T>,
    V: Factor<T>,
{
    one_read!();
}

impl<T, I: Id, const TABLE: usize, const S: usize> ReadsTogether<T> for Taken<'_, I, TABLE, S>
where
    T: Float<Accumulator = T>,
{
    one_read!();
}

impl<T, P, const TABLE: usize, const S: usize> ReadsTogether<T> for Stopped<P, TABLE, S>
where
    T: Float<Accumulator = T>,
    P: NamesRows<T>,
{
    one_read!();
}

impl<T: Float<Accumulator = T>> ReadsTogether<T> for () {
    #[inline(always)]
    fn names_any(&self, _: usize, _: ColumnIdsView<'_>) -> bool {
        false
    }

    #[inline(always)]
    fn meet<O: ReadsTogether<T>>(&self, _: usize, _: &O) -> bool {
        false
    }

    #[inline(always)]
    fn are_apart(&self, _: usize) -> bool {
        true
    }

    #[inline(always)]
    unsafe fn sum_all<R: UpdateRule, K: UpdateKind>(
        &self,
        _: usize,
        _: &mut [RowUpdater<'_, R, T, K>],
        (): (),
    ) {
    }
}

impl<T, A, B> ReadsTogether<T> for (A, B)
where
    T: Float<Accumulator = T>,
    A: ReadsTogether<T>,
    B: ReadsTogether<T>,
{
    #[inline(always)]
    fn names_any(&self, row: usize, ids: ColumnIdsView<'_>) -> bool {
        self.0.names_any(row, ids) || self.1.names_any(row, ids)
    }

    #[inline(always)]
    fn meet<O: ReadsTogether<T>>(&self, row: usize, others: &O) -> bool {
        self.0.meet(row, others) || self.1.meet(row, others)
    }

    #[inline(always)]
    fn are_apart(&self, row: usize) -> bool {
        !self.0.meet(row, &self.1) && self.0.are_apart(row) && self.1.are_apart(row)
    }

    #[inline(always)]
    unsafe fn sum_all<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
        gradients: Self::Gradients,
    ) {
        // SAFETY: promised by the caller.
        unsafe {
            self.0.sum_all(row, tables, gradients.0);
            self.1.sum_all(row, tables, gradients.1);
        }
    }
}

impl<T, L, const TABLE: usize, const S: usize> RowReads<T> for Together<L, TABLE, S>
where
    T: Float<Accumulator = T>,
    L: ReadsTogether<T>,
{
    type Gradients = L::Gradients;

    fn check<R: UpdateRule, K: UpdateKind>(
        &self,
        tables: &[RowUpdater<'_, R, T, K>],
    ) -> Result<()> {
        super::reads::check(tables, TABLE, S, None)?;
        self.reads.check(tables)
    }

    #[inline(always)]
    fn prefetch<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) {
        self.reads.prefetch(row, tables);
    }

    #[inline(always)]
    unsafe fn read<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<L::Numbers> {
        // SAFETY: promised by the caller.
        unsafe { self.reads.read(row, tables) }
    }

    #[inline(always)]
    unsafe fn update<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
        gradients: L::Gradients,
    ) {
        // A rule that only adds may add in turn: the gradients are numbers already.
        if K::PLAIN || self.reads.are_apart(row) {
            // SAFETY: promised by the caller.
            return unsafe { self.reads.update(row, tables, gradients) };
        }
        // SAFETY: as above.
        unsafe { self.reads.sum_all(row, tables, gradients) };
        tables[TABLE].apply_settled();
    }
}

impl<T, L, const TABLE: usize, const S: usize> SharedReads<T> for Together<L, TABLE, S>
where
    T: Float<Accumulator = T>,
    L: SharedReads<T>,
{
    type Numbers = L::Numbers;

    unsafe fn settle<R: UpdateRule, K: UpdateKind>(
        &self,
        n_rows: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<()> {
        // SAFETY: promised by the caller.
        unsafe { self.reads.settle(n_rows, tables) }
    }

    #[inline(always)]
    fn ask(&self, row: usize, tables: &[(RowWeights<'_, T>, bool)]) {
        self.reads.ask(row, tables);
    }

    #[inline(always)]
    unsafe fn numbers(&self, row: usize, tables: &[(RowWeights<'_, T>, bool)]) -> L::Numbers {
        // SAFETY: promised by the caller.
        unsafe { self.reads.numbers(row, tables) }
    }

    fn work(&self, n_rows: usize) -> usize {
        self.reads.work(n_rows)
    }
}
