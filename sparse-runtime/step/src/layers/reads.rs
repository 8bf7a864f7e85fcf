//! Reads of tables by a sample, and their updates.

use super::shared::SharedReads;
use crate::error::Result;
use crate::linear::{self, Fixed, is_large, prefetch_data, row_ahead, row_of};
use crate::model::ModelError;
use crate::optimizer::{ReadRows, RowCursor, RowUpdater, UpdateKind};
use nnz_arrays::formats::{ColumnId, CsrView};
use nnz_arrays::kernels::embedding_bag;
use nnz_arrays::with_column_ids;
use nnz_device::prefetch::AHEAD;
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float, Id, Stored};

/// What a row of data reads of tables: nothing, one of the types of this module, or a pair of what
/// a row of data reads. Pairs of pairs are as deep as the logarithm of the number of reads: rustc
/// follows the types of a nest to a depth of 128. Each table, by its position among those of the
/// loop, is read by one of them, or by those of one [`Together`](super::Together).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what a row of data reads of tables of `{T}`",
    note = "`graph!` chooses it: `Product`, `Bags` or `Taken`, or pairs of them"
)]
pub trait RowReads<T: Float<Accumulator = T>>: SharedReads<T> {
    /// The gradients with respect to the numbers that are read: as many of them, or `()` of what is
    /// not updated.
    type Gradients: Copy;

    /// Compares tables with what is read of them.
    ///
    /// # Errors
    ///
    /// [`ModelError::Extent`] for a table that is missing, or of another shape.
    fn check<R: UpdateRule, K: UpdateKind>(&self, tables: &[RowUpdater<'_, R, T, K>])
    -> Result<()>;

    /// Asks for what a later row reads, where that may be far away.
    fn prefetch<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    );

    /// Settles and reads what a row of data names.
    ///
    /// # Errors
    ///
    /// [`ModelError::Lookup`] for an id beyond a table.
    ///
    /// # Safety
    ///
    /// The tables have passed [`check`](Self::check).
    unsafe fn read<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<Self::Numbers>;

    /// Updates what a row of data names.
    ///
    /// # Safety
    ///
    /// The tables have passed [`check`](Self::check), and the row was [read](Self::read).
    unsafe fn update<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
        gradients: Self::Gradients,
    );
}

/// The rows, of `S` elements, that the columns of a row of a csr name, as `embedding_bag` adds them
/// up: each with the csr's value where they are `WEIGHTED`, and divided by their number, or the sum
/// of their weights, where it is the `MEAN` of them.
#[derive(Clone, Copy, Debug)]
pub struct Bags<
    'm,
    V: Stored,
    const TABLE: usize,
    const S: usize,
    const MEAN: bool,
    const WEIGHTED: bool,
> {
    /// A bag a row.
    pub csr: CsrView<'m, V>,
}

/// A row of `csr · table`, whose rows have `S` elements.
pub type Product<'m, V, const TABLE: usize, const S: usize> = Bags<'m, V, TABLE, S, false, true>;

/// The row of `S` elements that an id names.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'m, I, const TABLE: usize, const S: usize> {
    /// An id for each row of data.
    pub ids: &'m [I],
}

/// Compares the table of a read.
pub(super) fn check<R: UpdateRule, T: Float, K: UpdateKind>(
    tables: &[RowUpdater<'_, R, T, K>],
    table: usize,
    size: usize,
    n_rows: Option<usize>,
) -> Result<()> {
    let wrong = |axis, expected, found| {
        ModelError::extent("steps of one row", "table", axis, expected, found).into()
    };
    match tables.get(table) {
        None => Err(wrong(0, table + 1, tables.len())),
        Some(rows) if rows.row_size() != size => Err(wrong(1, rows.row_size(), size)),
        Some(rows) => match n_rows.filter(|n_rows| *n_rows != rows.n_rows()) {
            Some(n_rows) => Err(wrong(0, rows.n_rows(), n_rows)),
            None => Ok(()),
        },
    }
}

impl<T, V, const TABLE: usize, const S: usize, const MEAN: bool, const WEIGHTED: bool> RowReads<T>
    for Bags<'_, V, TABLE, S, MEAN, WEIGHTED>
where
    T: Float<Accumulator = T>,
    V: Factor<T>,
{
    type Gradients = [T; S];

    fn check<R: UpdateRule, K: UpdateKind>(
        &self,
        tables: &[RowUpdater<'_, R, T, K>],
    ) -> Result<()> {
        check(tables, TABLE, S, Some(self.csr.n_cols()))
    }

    #[inline(always)]
    fn prefetch<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) {
        let (csr, rows) = (self.csr, &mut tables[TABLE]);
        with_column_ids!(csr.columns(), |ids| {
            prefetch_data(csr, ids, row);
            if is_large(rows) {
                rows.prefetch_each(S, row_ahead(csr, ids, row));
            }
        });
    }

    #[inline(always)]
    unsafe fn read<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<[T; S]> {
        let (cursor, mut settling) = tables[TABLE].split(S);
        let mut numbers = [T::zero(); S];
        with_column_ids!(self.csr.columns(), |ids| {
            let (ids, values) = row_of(self.csr, ids, row);
            // SAFETY: a view's columns are below its `n_cols`, which `check` compared with the
            // rows. They are updated next.
            unsafe {
                settling.settle_each(cursor, ids, true);
                match WEIGHTED {
                    true => linear::product(ids, values, cursor, Fixed::<S>, &mut numbers),
                    false => add_alike(ids, cursor, &mut numbers),
                }
            }
        });
        self.scale(row, &mut numbers);
        Ok(numbers)
    }

    #[inline(always)]
    unsafe fn update<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
        mut gradients: [T; S],
    ) {
        let (cursor, mut settling) = tables[TABLE].split(S);
        self.scale(row, &mut gradients);
        with_column_ids!(self.csr.columns(), |ids| {
            let (ids, values) = row_of(self.csr, ids, row);
            // SAFETY: as in `read`.
            unsafe {
                match WEIGHTED {
                    true => linear::scatter(ids, values, cursor, Fixed::<S>, &mut gradients),
                    false => scatter_alike(ids, cursor, gradients),
                }
                settling.mark_unsettled::<K, _>(ids);
            }
        });
    }
}

impl<V: Stored, const TABLE: usize, const S: usize, const MEAN: bool, const WEIGHTED: bool>
    Bags<'_, V, TABLE, S, MEAN, WEIGHTED>
{
    /// Makes a mean of a sum, and likewise of its gradient.
    #[inline(always)]
    pub(super) fn scale<T: Float<Accumulator = T>>(&self, row: usize, numbers: &mut [T; S])
    where
        V: Factor<T>,
    {
        if MEAN {
            let share = embedding_bag::cpu::share::<T, V>(self.csr, row, MEAN, WEIGHTED);
            for number in numbers {
                *number *= share;
            }
        }
    }
}

/// Adds rows up.
///
/// # Safety
///
/// The ids are below the parameter's rows, of `S` elements.
#[inline(always)]
pub(super) unsafe fn add_alike<'a, T: Float<Accumulator = T>, I: ColumnId, const S: usize>(
    ids: &[I],
    rows: impl ReadRows<'a, T>,
    sums: &mut [T; S],
) {
    for id in ids {
        // SAFETY: promised by the caller.
        let weights = unsafe { rows.row(id.at()) };
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum += *weight;
        }
    }
}

/// Updates rows with one gradient.
///
/// # Safety
///
/// The ids are below the parameter's rows, of `S` elements.
#[inline(always)]
unsafe fn scatter_alike<R: UpdateRule, T, K: UpdateKind, I: ColumnId, const S: usize>(
    ids: &[I],
    rows: RowCursor<'_, R, T, K>,
    mut gradient: [T; S],
) where
    T: Float<Accumulator = T>,
{
    if let Some(factor) = rows.plain_factor() {
        gradient.iter_mut().for_each(|gradient| *gradient *= factor);
        for id in ids {
            // SAFETY: promised by the caller.
            unsafe { rows.add_row(id.at(), &gradient, |change| change) };
        }
        return;
    }
    for id in ids {
        // SAFETY: promised by the caller.
        unsafe { rows.update_row_by(id.at(), &gradient, |gradient, _| gradient) };
    }
}

impl<T, I: Id, const TABLE: usize, const S: usize> RowReads<T> for Taken<'_, I, TABLE, S>
where
    T: Float<Accumulator = T>,
{
    type Gradients = [T; S];

    fn check<R: UpdateRule, K: UpdateKind>(
        &self,
        tables: &[RowUpdater<'_, R, T, K>],
    ) -> Result<()> {
        check(tables, TABLE, S, None)
    }

    #[inline(always)]
    fn prefetch<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) {
        let rows = &mut tables[TABLE];
        if is_large(rows)
            && let Some(id) = self.ids.get(row + AHEAD).and_then(|id| id.index())
        {
            rows.prefetch_each(S, &[id as u64]);
        }
    }

    #[inline(always)]
    unsafe fn read<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<[T; S]> {
        let rows = &mut tables[TABLE];
        let id = self.id(row);
        if id >= rows.n_rows() {
            return Err(ModelError::Lookup { row, id, n_rows: rows.n_rows() }.into());
        }
        let (cursor, mut settling) = rows.split(S);
        let mut numbers = [T::zero(); S];
        // SAFETY: compared just now. The row is updated next.
        let weights = unsafe {
            settling.settle_each(cursor, &[id as u64], true);
            cursor.row(id)
        };
        for (number, weight) in numbers.iter_mut().zip(weights) {
            *number = *weight;
        }
        Ok(numbers)
    }

    #[inline(always)]
    unsafe fn update<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
        gradients: [T; S],
    ) {
        let (cursor, mut settling) = tables[TABLE].split(S);
        let ids = [self.id(row) as u64];
        // SAFETY: `read` has compared the id.
        unsafe {
            scatter_alike(&ids, cursor, gradients);
            settling.mark_unsettled::<K, _>(&ids);
        }
    }
}

impl<I: Id, const TABLE: usize, const S: usize> Taken<'_, I, TABLE, S> {
    /// The id of a row of data; where there is none, one beyond any table.
    #[inline(always)]
    pub(super) fn id(&self, row: usize) -> usize {
        self.ids.get(row).and_then(|id| id.index()).unwrap_or(usize::MAX)
    }
}

impl<T: Float<Accumulator = T>> RowReads<T> for () {
    type Gradients = ();

    fn check<R: UpdateRule, K: UpdateKind>(&self, _: &[RowUpdater<'_, R, T, K>]) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn prefetch<R: UpdateRule, K: UpdateKind>(&self, _: usize, _: &mut [RowUpdater<'_, R, T, K>]) {}

    #[inline(always)]
    unsafe fn read<R: UpdateRule, K: UpdateKind>(
        &self,
        _: usize,
        _: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<()> {
        Ok(())
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

impl<T: Float<Accumulator = T>, A: RowReads<T>, B: RowReads<T>> RowReads<T> for (A, B) {
    type Gradients = (A::Gradients, B::Gradients);

    fn check<R: UpdateRule, K: UpdateKind>(
        &self,
        tables: &[RowUpdater<'_, R, T, K>],
    ) -> Result<()> {
        self.0.check(tables)?;
        self.1.check(tables)
    }

    #[inline(always)]
    fn prefetch<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) {
        self.0.prefetch(row, tables);
        self.1.prefetch(row, tables);
    }

    #[inline(always)]
    unsafe fn read<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
    ) -> Result<Self::Numbers> {
        // SAFETY: promised by the caller.
        unsafe { Ok((self.0.read(row, tables)?, self.1.read(row, tables)?)) }
    }

    #[inline(always)]
    unsafe fn update<R: UpdateRule, K: UpdateKind>(
        &self,
        row: usize,
        tables: &mut [RowUpdater<'_, R, T, K>],
        gradients: Self::Gradients,
    ) {
        // SAFETY: promised by the caller.
        unsafe {
            self.0.update(row, tables, gradients.0);
            self.1.update(row, tables, gradients.1);
        }
    }
}
