//! Reads of table rows in steps that are not one loop: trained parameters are read in the memory
//! that their update writes.
//!
//! The results are those of the operators' kernels. A table row is caught up before it is read, and
//! read beside the states of its rule, so that reading and updating it touch the same memory. For a
//! rule that has neither, the kernel does the work.

use crate::error::Result;
use crate::linear::{Runtime, is_large, prefetch_data, product as row_product, row_ahead, row_of};
use crate::model::ModelError;
use crate::optimizer::{ReadRows, RowCursor, RowUpdater, UpdateKind, Updater};
use crate::with_rows;
use nnz_arrays::formats::{ColumnId, CsrView, Dense, DenseView, IdsView, MAX_RANK, Shape};
use nnz_arrays::kernels::{Context, dot, embedding_bag, take};
use nnz_arrays::parameter_memory::Table;
use nnz_arrays::with_column_ids;
use nnz_device::prefetch::is_far;
use nnz_device::simd;
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float, Id, Stored};

/// A trained parameter during a step.
#[derive(Debug)]
pub struct Lent<'a, R: UpdateRule, T: Float> {
    /// Its number.
    pub parameter: usize,
    /// Its shape.
    pub shape: Shape,
    /// Its memory.
    pub table: &'a mut Table<T>,
    /// What updates it.
    pub updater: &'a mut Updater<R, T>,
}

impl<R: UpdateRule, T: Float> Lent<'_, R, T> {
    /// The values, where a row need neither be settled nor lie beside anything.
    fn plain_values(&self) -> Option<DenseView<'_, T>> {
        let is_plain = self.updater.is_plain(self.parameter);
        is_plain.then(|| DenseView::table(self.shape, self.table.values()))
    }

    /// [`plain_values`](Self::plain_values) where a kernel reads them as fast as a loop that asks
    /// for rows ahead: they fit a cache. It does not depend on the number of threads, since a
    /// kernel's sums have an order of their own.
    fn near_values(&self) -> Option<DenseView<'_, T>> {
        let is_near = !is_far(self.table.len() * size_of::<T>());
        self.plain_values().filter(|_| is_near)
    }

    /// The shape of so many rows, of which each is one of the parameter.
    fn rows_shape(&self, rows: &[usize]) -> Shape {
        let mut dims = [0; MAX_RANK];
        let rank = rows.len() + self.shape.rank() - 1;
        let all = rows.iter().chain(&self.shape[1..]);
        dims.iter_mut().zip(all).for_each(|(dim, extent)| *dim = *extent);
        Shape::new(&dims[..rank])
    }
}

/// `dot(x, w)`: O(nnz · elements of a row).
///
/// # Errors
///
/// As [`Updater::rows`]; [`ModelError::Extent`] unless the csr is as wide as the parameter has
/// rows.
pub fn product<R: UpdateRule, T: Float<Accumulator = T>, V: Factor<T>>(
    out: &mut Dense<T>,
    x: CsrView<'_, V>,
    from: Lent<'_, R, T>,
    context: &mut Context,
) -> Result<()> {
    if let Some(values) = from.near_values() {
        dot::cpu::csr_dense(out, x, values, false, context);
        return Ok(());
    }
    out.reset(from.rows_shape(&[x.n_rows()]));
    with_rows!(R, T; *from.updater, [from.parameter => from.table], |[rows]| {
        check_width(x, rows.n_rows())?;
        let out = out.values_mut();
        simd::wide(
            #[inline(always)]
            || products(out, x, rows),
        );
        Ok(())
    })
}

/// `embedding_bag(bags, table)`: O(nnz · elements of a row).
///
/// # Errors
///
/// As [`product`].
pub fn bags<R: UpdateRule, T: Float<Accumulator = T>, V: Factor<T>>(
    out: &mut Dense<T>,
    bags: CsrView<'_, V>,
    from: Lent<'_, R, T>,
    mean: bool,
    weighted: bool,
    context: &mut Context,
) -> Result<()> {
    if let Some(values) = from.near_values() {
        embedding_bag::cpu::csr_dense(out, bags, values, mean, weighted, context);
        return Ok(());
    }
    out.reset(from.rows_shape(&[bags.n_rows()]));
    with_rows!(R, T; *from.updater, [from.parameter => from.table], |[rows]| {
        check_width(bags, rows.n_rows())?;
        let out = out.values_mut();
        simd::wide(
            #[inline(always)]
            || sums(out, bags, (mean, weighted), rows),
        );
        Ok(())
    })
}

/// `take(table, ids)` and `embedding(ids, table)`: O(elements of the result). An id beyond the
/// table gives NaN.
///
/// # Errors
///
/// As [`Updater::rows`].
pub fn taken<'i, R: UpdateRule, T: Float<Accumulator = T>, I: Id>(
    out: &mut Dense<T>,
    ids: DenseView<'i, I>,
    from: Lent<'_, R, T>,
    context: &mut Context,
) -> Result<()>
where
    IdsView<'i>: From<DenseView<'i, I>>,
{
    if let Some(values) = from.plain_values() {
        take::cpu::dense_ids(out, values, ids.into(), 0, false, false, context);
        return Ok(());
    }
    out.reset_for_overwrite(from.rows_shape(ids.shape()));
    with_rows!(R, T; *from.updater, [from.parameter => from.table], |[rows]| {
        let (out, ids) = (out.values_mut(), ids.values());
        simd::wide(
            #[inline(always)]
            || copies(out, ids, rows),
        );
        Ok(())
    })
}

/// What the unchecked accesses below rely on.
fn check_width<V: Stored>(x: CsrView<'_, V>, n_rows: usize) -> Result<()> {
    if x.n_cols() == n_rows {
        return Ok(());
    }
    Err(ModelError::extent("rows of a parameter", "x", 1, x.n_cols(), n_rows).into())
}

/// The ids of the row of data whose rows are asked for now: of a batch of one row, of a later
/// batch.
#[inline(always)]
fn ahead<'a, V: Stored, I: ColumnId>(x: CsrView<'a, V>, ids: &'a [I], row: usize) -> &'a [I] {
    match x.n_rows() {
        1 => ids.get(x.upcoming()).unwrap_or_default(),
        _ => row_ahead(x, ids, row),
    }
}

/// To be compiled for vectors, as the loops below.
#[inline(always)]
fn products<R: UpdateRule, T: Float<Accumulator = T>, V: Factor<T>, K: UpdateKind>(
    out: &mut [T],
    x: CsrView<'_, V>,
    mut rows: RowUpdater<'_, R, T, K>,
) {
    let (large, row_size) = (is_large(&rows), rows.row_size());
    with_column_ids!(x.columns(), |ids| {
        for (row, out) in out.chunks_exact_mut(row_size.max(1)).enumerate() {
            prefetch_data(x, ids, row);
            if large {
                rows.prefetch_each(row_size, ahead(x, ids, row));
            }
            let (ids, values) = row_of(x, ids, row);
            // SAFETY: a view's columns are below its `n_cols`, which `product` compared; `out` is a
            // row of as many elements as one of the parameter.
            unsafe {
                rows.settle_each(row_size, ids);
                row_product(ids, values, rows.cursor(row_size), Runtime(row_size), out);
            }
        }
    });
}

#[inline(always)]
fn sums<R: UpdateRule, T: Float<Accumulator = T>, V: Factor<T>, K: UpdateKind>(
    out: &mut [T],
    bags: CsrView<'_, V>,
    (mean, weighted): (bool, bool),
    mut rows: RowUpdater<'_, R, T, K>,
) {
    let (large, row_size) = (is_large(&rows), rows.row_size());
    with_column_ids!(bags.columns(), |ids| {
        for (bag, out) in out.chunks_exact_mut(row_size.max(1)).enumerate() {
            prefetch_data(bags, ids, bag);
            if large {
                rows.prefetch_each(row_size, ahead(bags, ids, bag));
            }
            let share = embedding_bag::cpu::share::<T, V>(bags, bag, mean, weighted);
            let (ids, values) = row_of(bags, ids, bag);
            let factor = |value: V| if weighted { value.times(share) } else { share };
            // SAFETY: a view's columns are below its `n_cols`, which `bags` compared; `out` is a
            // row of as many elements as one of the parameter.
            unsafe {
                rows.settle_each(row_size, ids);
                add_rows(out, ids, values, factor, rows.cursor(row_size));
            }
        }
    });
}

/// `out += Σ factor(value) · row` over the rows that ids name, in order: some columns after the
/// others, so that their sums stay in registers.
///
/// # Safety
///
/// The ids are below the parameter's rows, of as many elements as `out`.
#[inline(always)]
unsafe fn add_rows<
    R: UpdateRule,
    T: Float<Accumulator = T>,
    V: Stored,
    K: UpdateKind,
    I: ColumnId,
>(
    out: &mut [T],
    ids: &[I],
    values: &[V],
    factor: impl Fn(V) -> T,
    rows: RowCursor<'_, R, T, K>,
) {
    let mut rest = out;
    let mut start = 0;
    macro_rules! add_blocks_of {
        ($size:literal) => {{
            let (blocks, others) = rest.as_chunks_mut::<$size>();
            for block in blocks {
                let mut sums = *block;
                for (id, value) in ids.iter().zip(values) {
                    let factor = factor(*value);
                    // SAFETY: promised by the caller.
                    let row = unsafe { rows.row(id.at()).get_unchecked(start..start + $size) };
                    for (sum, x) in sums.iter_mut().zip(row) {
                        *sum += factor * *x;
                    }
                }
                *block = sums;
                start += $size;
            }
            rest = others;
        }};
    }
    add_blocks_of!(16);
    add_blocks_of!(4);
    add_blocks_of!(1);
    debug_assert!(rest.is_empty());
}

#[inline(always)]
fn copies<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind, I: Id>(
    out: &mut [T],
    ids: &[I],
    mut rows: RowUpdater<'_, R, T, K>,
) {
    /// Ids between asking for a row and reading it.
    const AHEAD: usize = 16;
    let large = is_large(&rows);
    let chunks = out.chunks_exact_mut(rows.row_size().max(1));
    for (at, (id, out)) in ids.iter().zip(chunks).enumerate() {
        if large && let Some(ahead) = ids.get(at + AHEAD) {
            rows.prefetch(ahead.index().unwrap_or(0));
        }
        match id.index().filter(|row| *row < rows.n_rows()) {
            // SAFETY: compared just now.
            Some(row) => unsafe {
                rows.settle_unchecked(row);
                out.copy_from_slice(rows.row_unchecked(row));
            },
            None => out.fill(T::nan()),
        }
    }
}
