//! Reads of tables by samples on several threads at once.

use super::reads::{Bags, Taken, add_alike};
use crate::error::Result;
use crate::linear::{self, Fixed, prefetch_data, row_ahead, row_of};
use crate::model::ModelError;
use crate::optimizer::{ReadRows as _, RowUpdater, RowWeights, UpdateKind};
use nnz_arrays::with_column_ids;
use nnz_device::prefetch::AHEAD;
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float, Id};

/// [`RowReads`](super::RowReads) of many rows of data, none of which is written before all are
/// read.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what a row of data reads of tables of `{T}`",
    note = "`graph!` chooses it: `Product`, `Bags` or `Taken`, or pairs of them"
)]
pub trait SharedReads<T: Float<Accumulator = T>>: Copy + Sync {
    /// What is read: an array, or pairs of them.
    type Numbers: Copy;

    /// Settles the rows that `n_rows` rows of data name.
    ///
    /// # Errors
    ///
    /// [`ModelError::Lookup`] for an id beyond a table.
    ///
    /// # Safety
    ///
    /// The tables have passed [`check`](super::RowReads::check).
    unsafe fn settle<R: UpdateRule, K: UpdateKind>(
        &self,
        n_rows: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<()>;

    /// Asks for what a later row reads, of tables that are larger than a cache.
    fn ask(&self, row: usize, tables: &[(RowWeights<'_, T>, bool)]);

    /// Reads what a row of data names.
    ///
    /// # Safety
    ///
    /// The tables have passed [`check`](super::RowReads::check), the row was
    /// [settled](Self::settle), and nobody writes meanwhile.
    unsafe fn numbers(&self, row: usize, tables: &[(RowWeights<'_, T>, bool)]) -> Self::Numbers;

    /// The work of reading what `n_rows` rows of data name, in about a quarter of a nanosecond.
    fn work(&self, n_rows: usize) -> usize;
}

/// What an entry costs beside the elements of its row.
const WORK_OF_AN_ENTRY: usize = 15;

impl<T, V, const TABLE: usize, const S: usize, const MEAN: bool, const WEIGHTED: bool>
    SharedReads<T> for Bags<'_, V, TABLE, S, MEAN, WEIGHTED>
where
    T: Float<Accumulator = T>,
    V: Factor<T>,
{
    type Numbers = [T; S];

    unsafe fn settle<R: UpdateRule, K: UpdateKind>(
        &self,
        n_rows: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<()> {
        let rows = &mut tables[TABLE];
        if rows.settles() {
            with_column_ids!(self.csr.columns(), |ids| for row in 0..n_rows {
                rows.prefetch_each(S, row_ahead(self.csr, ids, row));
                // SAFETY: a view's columns are below its `n_cols`, which `check` compared with the
                // rows.
                unsafe { rows.settle_each(S, row_of(self.csr, ids, row).0) };
            });
        }
        Ok(())
    }

    #[inline(always)]
    fn ask(&self, row: usize, tables: &[(RowWeights<'_, T>, bool)]) {
        let (rows, large) = tables[TABLE];
        with_column_ids!(self.csr.columns(), |ids| {
            prefetch_data(self.csr, ids, row);
            if large {
                rows.prefetch_each(row_ahead(self.csr, ids, row));
            }
        });
    }

    #[inline(always)]
    unsafe fn numbers(&self, row: usize, tables: &[(RowWeights<'_, T>, bool)]) -> [T; S] {
        let rows = tables[TABLE].0.of_size(S);
        let mut numbers = [T::zero(); S];
        with_column_ids!(self.csr.columns(), |ids| {
            let (ids, values) = row_of(self.csr, ids, row);
            // SAFETY: a view's columns are below its `n_cols`, which `check` compared with the
            // rows, of `S` elements.
            unsafe {
                match WEIGHTED {
                    true => linear::product(ids, values, rows, Fixed::<S>, &mut numbers),
                    false => add_alike(ids, rows, &mut numbers),
                }
            }
        });
        self.scale(row, &mut numbers);
        numbers
    }

    fn work(&self, n_rows: usize) -> usize {
        let nnz = match n_rows {
            0 => 0,
            _ => self.csr.nnz(),
        };
        nnz.saturating_mul(S + WORK_OF_AN_ENTRY)
    }
}

impl<T, I: Id, const TABLE: usize, const S: usize> SharedReads<T> for Taken<'_, I, TABLE, S>
where
    T: Float<Accumulator = T>,
{
    type Numbers = [T; S];

    unsafe fn settle<R: UpdateRule, K: UpdateKind>(
        &self,
        n_rows: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<()> {
        let rows = &mut tables[TABLE];
        for row in 0..n_rows {
            let id = self.id(row);
            if id >= rows.n_rows() {
                return Err(ModelError::Lookup { row, id, n_rows: rows.n_rows() }.into());
            }
            if rows.settles() {
                rows.prefetch(self.id(row + AHEAD));
                // SAFETY: compared just now.
                unsafe { rows.settle_each(S, &[id as u64]) };
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn ask(&self, row: usize, tables: &[(RowWeights<'_, T>, bool)]) {
        let (rows, large) = tables[TABLE];
        if large {
            rows.prefetch(self.id(row + AHEAD));
        }
    }

    #[inline(always)]
    unsafe fn numbers(&self, row: usize, tables: &[(RowWeights<'_, T>, bool)]) -> [T; S] {
        let rows = tables[TABLE].0.of_size(S);
        let mut numbers = [T::zero(); S];
        // SAFETY: `settle` has compared the id.
        let weights = unsafe { rows.row(self.id(row)) };
        for (number, weight) in numbers.iter_mut().zip(weights) {
            *number = *weight;
        }
        numbers
    }

    fn work(&self, n_rows: usize) -> usize {
        n_rows.saturating_mul(S + WORK_OF_AN_ENTRY)
    }
}

impl<T: Float<Accumulator = T>> SharedReads<T> for () {
    type Numbers = ();

    unsafe fn settle<R: UpdateRule, K: UpdateKind>(
        &self,
        _: usize,
        _: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn ask(&self, _: usize, _: &[(RowWeights<'_, T>, bool)]) {}

    #[inline(always)]
    unsafe fn numbers(&self, _: usize, _: &[(RowWeights<'_, T>, bool)]) {}

    fn work(&self, _: usize) -> usize {
        0
    }
}

impl<T: Float<Accumulator = T>, A: SharedReads<T>, B: SharedReads<T>> SharedReads<T> for (A, B) {
    type Numbers = (A::Numbers, B::Numbers);

    unsafe fn settle<R: UpdateRule, K: UpdateKind>(
        &self,
        n_rows: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<()> {
        // SAFETY: promised by the caller.
        unsafe {
            self.0.settle(n_rows, tables)?;
            self.1.settle(n_rows, tables)
        }
    }

    #[inline(always)]
    fn ask(&self, row: usize, tables: &[(RowWeights<'_, T>, bool)]) {
        self.0.ask(row, tables);
        self.1.ask(row, tables);
    }

    #[inline(always)]
    unsafe fn numbers(&self, row: usize, tables: &[(RowWeights<'_, T>, bool)]) -> Self::Numbers {
        // SAFETY: promised by the caller.
        unsafe { (self.0.numbers(row, tables), self.1.numbers(row, tables)) }
    }

    fn work(&self, n_rows: usize) -> usize {
        self.0.work(n_rows).saturating_add(self.1.work(n_rows))
    }
}
