//! What layers read: the entries of rows of a matrix, and the rows of a table, whatever their
//! storage.

use super::entry_prefetch;
use super::index_set::IndexSet;
use crate::formats::{ColumnId, CsrView, DenseView, RowSparseView};
use crate::with_column_ids;
use sparse_core::element::{Factor, Float, Stored};

/// A matrix whose rows are read entry by entry.
pub(super) trait Entries<T: Float>: Copy {
    /// The number of rows.
    fn n_rows(&self) -> usize;

    /// Calls `visit` with each entry of a row, its column and value, in order.
    fn for_each(&self, row: usize, visit: impl FnMut(usize, T));
}

impl<T: Float, V: Factor<T>> Entries<T> for CsrView<'_, V> {
    fn n_rows(&self) -> usize {
        CsrView::n_rows(self)
    }

    #[inline]
    fn for_each(&self, row: usize, mut visit: impl FnMut(usize, T)) {
        let range = self.starts()[row] as usize..self.ends()[row] as usize;
        let values = &self.values()[range.clone()];
        with_column_ids!(self.columns(), |ids| {
            ids[range].iter().zip(values).for_each(|(id, value)| visit(id.at(), value.number()));
        });
    }
}

/// Every element is an entry.
impl<T: Float> Entries<T> for DenseView<'_, T> {
    fn n_rows(&self) -> usize {
        self.shape().n_rows()
    }

    #[inline]
    fn for_each(&self, row: usize, mut visit: impl FnMut(usize, T)) {
        let elements = self.row(row).unwrap_or_default();
        elements.iter().enumerate().for_each(|(column, &value)| visit(column, value));
    }
}

/// A table that is read by rows.
pub(super) trait Table<T: Float>: Copy {
    /// The elements of a row.
    fn width(&self) -> usize;

    /// A row that is stored; what is not is zero.
    fn stored(&self, id: usize) -> Option<&[T]>;
}

impl<T: Float> Table<T> for DenseView<'_, T> {
    fn width(&self) -> usize {
        self.shape().row_size()
    }

    #[inline]
    fn stored(&self, id: usize) -> Option<&[T]> {
        self.row(id)
    }
}

impl<T: Float> Table<T> for RowSparseView<'_, T> {
    fn width(&self) -> usize {
        self.shape().row_size()
    }

    #[inline]
    fn stored(&self, id: usize) -> Option<&[T]> {
        self.row(id)
    }
}

/// Numbers the columns that occur in a matrix, ascending; `visit` gets each.
pub(super) fn number_columns<V: Stored>(
    columns: &mut IndexSet,
    matrix: CsrView<'_, V>,
    visit: impl FnMut(usize),
) {
    columns.begin_with(matrix.n_cols(), matrix.nnz());
    with_column_ids!(matrix.columns(), |ids| {
        for (row, (&start, &end)) in matrix.starts().iter().zip(matrix.ends()).enumerate() {
            entry_prefetch::prefetch_ids(matrix, ids, row);
            columns.insert_all(ids[start as usize..end as usize].iter().map(|id| id.at()));
        }
    });
    columns.finish(visit);
}

/// out += factor · x.
#[inline(always)]
pub(super) fn add_scaled<T: Float>(out: &mut [T::Accumulator], x: &[T], factor: T::Accumulator) {
    for (out, &x) in out.iter_mut().zip(x) {
        *out += factor * x.widen();
    }
}

/// The same in `f64`, to sums over a batch.
#[inline(always)]
pub(super) fn add_scaled_wide<T: Float>(sums: &mut [f64], x: &[T], factor: f64) {
    for (sum, &x) in sums.iter_mut().zip(x) {
        *sum += factor * x.as_f64();
    }
}
