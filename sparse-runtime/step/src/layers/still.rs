//! Reads without updates: behind `stop_gradient`, and of frozen parameters.

use super::reads::{self, RowReads};
use super::shared::SharedReads;
use super::together::NamesRows;
use crate::error::Result;
use crate::model::ModelError;
use crate::optimizer::{RowUpdater, RowWeights, UpdateKind};
use nnz_arrays::formats::{ColumnId, ColumnIdsView};
use nnz_arrays::with_column_ids;
use nnz_device::prefetch::is_far;
use nnz_optim::UpdateRule;
use sparse_core::element::Float;

/// A read of table `TABLE`, of rows of `S` elements, that nothing goes back to. The rows are
/// settled, as any that are read, and are idle in this step unless another read updates them.
/// `read` is of table 0.
#[derive(Clone, Copy, Debug)]
pub struct Stopped<P, const TABLE: usize, const S: usize> {
    /// What is read.
    pub read: P,
}

/// A read, of table 0, of a parameter that is not trained, with rows of `S` elements.
#[derive(Clone, Copy)]
pub struct Frozen<'m, T, P, const S: usize> {
    read: P,
    rows: RowWeights<'m, T>,
    n_rows: usize,
}

impl<'m, T: Float, P, const S: usize> Frozen<'m, T, P, S> {
    /// Reads rows of a parameter's values, row major.
    pub fn new(read: P, values: &'m [T]) -> Self {
        let rows = values.as_chunks::<S>().0;
        Frozen { read, rows: RowWeights::reading(rows), n_rows: rows.len() }
    }

    fn is_large(&self) -> bool {
        is_far(self.n_rows * size_of::<[T; S]>())
    }
}

impl<T, P, const S: usize> std::fmt::Debug for Frozen<'_, T, P, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frozen").field("n_rows", &self.n_rows).finish_non_exhaustive()
    }
}

/// Refuses ids of a row of data that are not below `n_rows`. They are ascending.
#[inline(always)]
fn check_ids(row: usize, ids: ColumnIdsView<'_>, n_rows: usize) -> Result<()> {
    let last = with_column_ids!(ids, |ids| ids.last().map(|id| id.at()));
    match last.filter(|id| *id >= n_rows) {
        Some(id) => Err(ModelError::Lookup { row, id, n_rows }.into()),
        None => Ok(()),
    }
}

/// Settles the rows that a row of data names, and compares them with the table.
#[inline(always)]
fn settle<T, P, R, K, const S: usize>(
    read: &P,
    row: usize,
    rows: &mut RowUpdater<'_, R, T, K>,
) -> Result<()>
where
    T: Float<Accumulator = T>,
    P: NamesRows<T>,
    R: UpdateRule,
    K: UpdateKind,
{
    read.with_ids(row, |ids| {
        check_ids(row, ids, rows.n_rows())?;
        // SAFETY: the last is the largest, and below the rows.
        with_column_ids!(ids, |ids| unsafe { rows.settle_each(S, ids) });
        Ok(())
    })
}

impl<T, P, const TABLE: usize, const S: usize> RowReads<T> for Stopped<P, TABLE, S>
where
    T: Float<Accumulator = T>,
    P: NamesRows<T>,
{
    type Gradients = ();

    fn check<R: UpdateRule, K: UpdateKind>(
        &self,
        tables: &[RowUpdater<'_, R, T, K>],
    ) -> Result<()> {
        reads::check(tables, TABLE, S, None)?;
        self.read.check(&tables[TABLE..])
    }

    #[inline(always)]
    fn prefetch<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) {
        self.read.prefetch(row, &mut tables[TABLE..]);
    }

    #[inline(always)]
    unsafe fn read<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<P::Numbers> {
        let rows = &mut tables[TABLE];
        settle::<T, P, R, K, S>(&self.read, row, rows)?;
        let rows = rows.shared(S);
        // SAFETY: settled just now, which has compared the ids; promised by the caller.
        Ok(unsafe { self.read.numbers(row, &[(rows.weights(), false)]) })
    }

    #[inline(always)]
    unsafe fn update<R: UpdateRule, K: UpdateKind>(
        &self,
        _: usize,
        _: &mut [RowUpdater<'_, R, T, K>],
        (): (),
    ) {
    }
}

impl<T, P, const TABLE: usize, const S: usize> SharedReads<T> for Stopped<P, TABLE, S>
where
    T: Float<Accumulator = T>,
    P: NamesRows<T>,
{
    type Numbers = P::Numbers;

    unsafe fn settle<R: UpdateRule, K: UpdateKind>(
        &self,
        n_rows: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<()> {
        // SAFETY: promised by the caller.
        unsafe { self.read.settle(n_rows, &mut tables[TABLE..]) }
    }

    #[inline(always)]
    fn ask(&self, row: usize, tables: &[(RowWeights<'_, T>, bool)]) {
        self.read.ask(row, &tables[TABLE..]);
    }

    #[inline(always)]
    unsafe fn numbers(&self, row: usize, tables: &[(RowWeights<'_, T>, bool)]) -> P::Numbers {
        // SAFETY: promised by the caller.
        unsafe { self.read.numbers(row, &tables[TABLE..]) }
    }

    fn work(&self, n_rows: usize) -> usize {
        self.read.work(n_rows)
    }
}

/// Of the rows that it reads it updates none, and so it names none.
impl<T, P, const TABLE: usize, const S: usize> NamesRows<T> for Stopped<P, TABLE, S>
where
    T: Float<Accumulator = T>,
    P: NamesRows<T>,
{
    #[inline(always)]
    fn with_ids<Q>(&self, _: usize, look: impl FnOnce(ColumnIdsView<'_>) -> Q) -> Q {
        look(ColumnIdsView::U32(&[]))
    }

    #[inline(always)]
    unsafe fn sum<R: UpdateRule, K: UpdateKind>(
        &self,
        _: usize,
        _: &mut [RowUpdater<'_, R, T, K>],
        (): (),
    ) {
    }
}

impl<T, P, const S: usize> RowReads<T> for Frozen<'_, T, P, S>
where
    T: Float<Accumulator = T>,
    P: NamesRows<T>,
{
    type Gradients = ();

    fn check<R: UpdateRule, K: UpdateKind>(&self, _: &[RowUpdater<'_, R, T, K>]) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn prefetch<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        _: &mut [RowUpdater<'_, R, T, K>],
    ) {
        self.ask(row, &[]);
    }

    #[inline(always)]
    unsafe fn read<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        _: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<P::Numbers> {
        self.read.with_ids(row, |ids| check_ids(row, ids, self.n_rows))?;
        // SAFETY: compared just now.
        Ok(unsafe { self.numbers(row, &[]) })
    }

    #[inline(always)]
    unsafe fn update<R: UpdateRule, K: UpdateKind>(
        &self,
        _: usize,
        _: &mut [RowUpdater<'_, R, T, K>],
        (): (),
    ) {
    }
}

impl<T, P, const S: usize> SharedReads<T> for Frozen<'_, T, P, S>
where
    T: Float<Accumulator = T>,
    P: NamesRows<T>,
{
    type Numbers = P::Numbers;

    unsafe fn settle<R: UpdateRule, K: UpdateKind>(
        &self,
        n_rows: usize,
        _: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<()> {
        (0..n_rows)
            .try_for_each(|row| self.read.with_ids(row, |ids| check_ids(row, ids, self.n_rows)))
    }

    #[inline(always)]
    fn ask(&self, row: usize, _: &[(RowWeights<'_, T>, bool)]) {
        if self.is_large() {
            self.read.ask(row, &[(self.rows, true)]);
        }
    }

    #[inline(always)]
    unsafe fn numbers(&self, row: usize, _: &[(RowWeights<'_, T>, bool)]) -> P::Numbers {
        // SAFETY: `settle` or `read` has compared the ids, and nobody writes what is borrowed.
        unsafe { self.read.numbers(row, &[(self.rows, false)]) }
    }

    fn work(&self, n_rows: usize) -> usize {
        self.read.work(n_rows)
    }
}
