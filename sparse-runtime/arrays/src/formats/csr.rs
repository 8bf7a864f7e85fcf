//! `csr`: compressed sparse rows.

use super::csr_check::check;
use super::ids::ColumnIndex;
use super::memory::{ELEMENTS, ROW_POINTERS, make_room};
use super::with_id_type;
use super::{
    ColumnId, ColumnIds, ColumnIdsView, CsrBuilder, CsrView, FormatError, RowEntries, Shape,
};
use crate::device::{Cpu, Device, Run};
use crate::with_column_ids;
use nnz_device::memory;
use sparse_core::element::{Float, Stored};

/// A matrix in compressed sparse rows.
///
/// Invariant: `indptr` has `n_rows + 1` entries (or none at all, which means no rows), starts at 0,
/// never decreases and ends at `nnz`; inside a row the columns ascend strictly and are below
/// `n_cols`; there are as many values as columns. Stored zeros are allowed and are kept by every
/// conversion from csr to csr.
///
/// ```
/// use nnz::formats::Csr;
/// // row 0: (1) 2.0, (3) 1.5; row 1: nothing; row 2: (0) 4.0
/// let x = Csr::new(4, vec![0, 2, 2, 3], vec![1u32, 3, 0], vec![2.0f32, 1.5, 4.0])?;
/// assert_eq!((x.n_rows(), x.n_cols(), x.nnz()), (3, 4, 3));
/// let twice = Csr::new(4, vec![0, 2], vec![1u32, 1], vec![1.0f32, 1.0]).unwrap_err();
/// assert!(twice.to_string().starts_with("column 1 occurs twice in row 0"));
/// # Ok::<(), nnz::formats::FormatError>(())
/// ```
#[derive(Clone)]
pub struct Csr<T: Stored = f32, D: Device = Cpu> {
    pub(super) n_cols: usize,
    pub(super) indptr: D::Buffer<u64>,
    pub(super) columns: D::ColumnIds,
    pub(super) values: D::Buffer<T>,
}

/// The arrays of a [`Csr`], taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct CsrParts<T> {
    /// The number of columns.
    pub n_cols: usize,
    /// `n_rows + 1` entries: where each row starts, and where the last one ends.
    pub indptr: Vec<u64>,
    /// The column of each stored entry.
    pub columns: ColumnIds,
    /// The value of each stored entry.
    pub values: Vec<T>,
}

/// What a matrix without rows shows as its `indptr`: an empty matrix owns no memory.
const NO_ROWS: &[u64] = &[0];

/// On any device.
impl<T: Stored, D: Device> Csr<T, D> {
    /// The number of rows.
    #[inline]
    pub fn n_rows(&self) -> usize {
        D::bounds(&self.indptr).0.len()
    }

    /// The number of columns.
    #[inline]
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// The number of stored entries (the name says non-zeros, but a stored zero counts).
    #[inline]
    pub fn nnz(&self) -> usize {
        D::slice(&self.values).len()
    }

    /// Borrowed.
    #[inline]
    pub fn view(&self) -> CsrView<'_, T, D> {
        let (starts, ends) = D::bounds(&self.indptr);
        CsrView {
            n_cols: self.n_cols,
            starts,
            ends,
            columns: D::column_ids(&self.columns),
            values: D::slice(&self.values),
            upcoming: (0, 0),
            divided: None,
        }
    }
}

impl<T: Stored> Csr<T> {
    /// A matrix from its arrays, every invariant checked, in O(n_rows + nnz). Columns are stored as
    /// `u32` if `n_cols` ≤ 2³², otherwise as `u64`; arrays of that type are moved, not copied.
    ///
    /// # Errors
    ///
    /// [`FormatError`], with the row, position, column and bound, for a broken invariant.
    pub fn new<C: ColumnIndex>(
        n_cols: usize,
        indptr: Vec<u64>,
        columns: Vec<C>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        check(n_cols, &indptr, &columns, values.len())?;
        Ok(Csr { n_cols, indptr, columns: C::into_column_ids(columns, n_cols), values })
    }

    /// A matrix from arrays that are known to satisfy the invariants; only builds with debug
    /// assertions check.
    pub fn from_canonical<C: ColumnIndex>(
        n_cols: usize,
        indptr: Vec<u64>,
        columns: Vec<C>,
        values: Vec<T>,
    ) -> Self {
        debug_assert_eq!(check(n_cols, &indptr, &columns, values.len()), Ok(()));
        Csr { n_cols, indptr, columns: C::into_column_ids(columns, n_cols), values }
    }

    /// Like [`new`](Csr::new), for a given number of rows: external data often states both.
    ///
    /// # Errors
    ///
    /// [`FormatError::IndptrLength`] unless `indptr` has an entry for each row and one more, and as
    /// [`new`](Csr::new).
    pub fn with_shape<C: ColumnIndex>(
        (n_rows, n_cols): (usize, usize),
        indptr: Vec<u64>,
        columns: Vec<C>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        if indptr.len().checked_sub(1) != Some(n_rows) {
            return Err(FormatError::IndptrLength { found: indptr.len(), n_rows });
        }
        Csr::new(n_cols, indptr, columns, values)
    }

    /// A matrix from the arrays of [`into_parts`](Csr::into_parts), checked as by
    /// [`new`](Csr::new).
    ///
    /// # Errors
    ///
    /// As [`new`](Csr::new).
    pub fn from_parts(parts: CsrParts<T>) -> Result<Self, FormatError> {
        let CsrParts { n_cols, indptr, columns, values } = parts;
        match columns {
            ColumnIds::U32(columns) => Csr::new(n_cols, indptr, columns, values),
            ColumnIds::U64(columns) => Csr::new(n_cols, indptr, columns, values),
        }
    }

    /// A matrix from `(row, column, value)` in any order; values at the same place are added in the
    /// order given. O(m log m) for m entries. Entries that add up to zero stay stored.
    ///
    /// # Errors
    ///
    /// [`FormatError::CoordinateOutOfRange`]; [`FormatError::OutOfMemory`] if there are too many
    /// rows.
    ///
    /// ```
    /// use nnz::formats::Csr;
    /// let x = Csr::from_coo(2, 3, [(1, 2, 1.0f32), (0, 1, 5.0), (1, 2, 0.5)])?;
    /// assert_eq!(x, Csr::new(3, vec![0, 1, 2], vec![1u32, 2], vec![5.0, 1.5])?);
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn from_coo(
        n_rows: usize,
        n_cols: usize,
        entries: impl IntoIterator<Item = (usize, usize, T)>,
    ) -> Result<Self, FormatError>
    where
        T: Float,
    {
        let mut entries: Vec<(usize, usize, T)> = entries.into_iter().collect();
        for (position, &(row, column, _)) in entries.iter().enumerate() {
            if row >= n_rows || column >= n_cols {
                return Err(FormatError::CoordinateOutOfRange {
                    position,
                    row,
                    column,
                    n_rows,
                    n_cols,
                });
            }
        }
        let shape = Shape::from([n_rows, n_cols]);
        // What sorting takes besides.
        let scratch = entries.len().saturating_mul(size_of::<(usize, usize, T)>());
        if !memory::is_there_for::<u8>(scratch) {
            return Err(FormatError::OutOfMemory { what: ELEMENTS, shape, bytes: scratch });
        }
        // Stable, so that equal places are added in the order given.
        entries.sort_by_key(|&(row, column, _)| (row, column));
        entries.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 += next.2;
            }
            same
        });

        let mut matrix = Csr::default();
        matrix.make_room_for_rows(shape)?;
        with_id_type!(n_cols, |I| matrix.rebuild::<I, _>(n_cols, |parts| {
            make_room(&mut parts.columns, entries.len(), ELEMENTS, shape)?;
            make_room(&mut parts.values, entries.len(), ELEMENTS, shape)?;
            for &(row, column, value) in &entries {
                while parts.indptr.len() <= row {
                    parts.finish_row();
                }
                parts.push(I::from_index(column), value);
            }
            while parts.indptr.len() <= n_rows {
                parts.finish_row();
            }
            Ok::<(), FormatError>(())
        }))?;
        Ok(matrix)
    }

    /// A matrix from its rows, each the `(column, value)` of its entries with ascending columns.
    ///
    /// # Errors
    ///
    /// [`FormatError`], with the row, position, column and bound, for unsorted, repeated or too
    /// large columns.
    ///
    /// ```
    /// use nnz::formats::Csr;
    /// let x = Csr::from_rows(4, [vec![(1, 2.0f32), (3, 1.5)], vec![], vec![(0, 4.0)]])?;
    /// assert_eq!((x.n_rows(), x.nnz()), (3, 3));
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn from_rows<R>(
        n_cols: usize,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Self, FormatError>
    where
        R: IntoIterator<Item = (usize, T)>,
    {
        let mut builder = CsrBuilder::with_n_cols(n_cols);
        for row in rows {
            for (column, value) in row {
                builder.push_entry(column, value)?;
            }
            builder.finish_row();
        }
        builder.finish(Some(n_cols))
    }

    /// A matrix that stores nothing.
    ///
    /// # Panics
    ///
    /// If there is no memory for the row pointers, 8 bytes a row; [`try_zeros`](Csr::try_zeros)
    /// returns the error.
    #[track_caller]
    pub fn zeros(n_rows: usize, n_cols: usize) -> Self {
        let mut matrix = Csr::default();
        matrix.reset(n_rows, n_cols);
        matrix
    }

    /// `n_rows + 1` entries: where each row starts, and where the last one ends.
    #[inline]
    pub fn indptr(&self) -> &[u64] {
        if self.indptr.is_empty() { NO_ROWS } else { &self.indptr }
    }

    /// The columns of all stored entries, row after row.
    #[doc(alias = "indices")]
    #[inline]
    pub fn columns(&self) -> ColumnIdsView<'_> {
        self.columns.view()
    }

    /// The values of all stored entries, row after row.
    #[doc(alias = "data")]
    #[inline]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The values of all stored entries, for writing; the pattern stays.
    #[inline]
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// The arrays, with the values for writing.
    pub(crate) fn parts_mut(&mut self) -> (&[u64], ColumnIdsView<'_>, &mut [T]) {
        let indptr: &[u64] = if self.indptr.is_empty() { NO_ROWS } else { &self.indptr };
        (indptr, self.columns.view(), &mut self.values)
    }

    /// The columns and values of row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> Option<(ColumnIdsView<'_>, &[T])> {
        self.view().row(i)
    }

    /// The rows in order, each an iterator over its `(column, value)`.
    ///
    /// ```
    /// use nnz::formats::Csr;
    /// let x = Csr::from_coo(2, 3, [(0, 0, 1.0f32), (0, 2, 2.0), (1, 1, 3.0)])?;
    /// let sums: Vec<f32> = x.iter_rows().map(|row| row.map(|(_, value)| value).sum()).collect();
    /// assert_eq!(sums, [3.0, 3.0]);
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn iter_rows(&self) -> impl ExactSizeIterator<Item = RowEntries<'_, T>> {
        self.view().iter_rows()
    }

    /// The arrays, without copying.
    pub fn into_parts(mut self) -> CsrParts<T> {
        if self.indptr.is_empty() {
            self.indptr.push(0);
        }
        CsrParts {
            n_cols: self.n_cols,
            indptr: self.indptr,
            columns: self.columns,
            values: self.values,
        }
    }

    /// Becomes a matrix of this size that stores nothing, keeping its allocations.
    ///
    /// # Panics
    ///
    /// If there is no memory for the row pointers, 8 bytes a row.
    #[track_caller]
    pub fn reset(&mut self, n_rows: usize, n_cols: usize) {
        if let Err(error) = self.make_room_for_rows([n_rows, n_cols].into()) {
            panic!("{error}");
        }
        self.n_cols = n_cols;
        self.indptr.clear();
        self.indptr.resize(n_rows + 1, 0);
        self.columns.reset(n_cols);
        self.values.clear();
    }

    /// Makes sure that the rows of a shape neither panic nor end the process.
    ///
    /// # Errors
    ///
    /// [`FormatError::OutOfMemory`]; the matrix is as before.
    pub(super) fn make_room_for_rows(&mut self, shape: Shape) -> Result<(), FormatError> {
        make_room(&mut self.indptr, shape.n_rows().saturating_add(1), ROW_POINTERS, shape)
    }

    /// Rewrites the matrix in its own allocations: `write` gets cleared arrays, `indptr` being
    /// `[0]`.
    ///
    /// What it leaves must be canonical, as the type's invariant says; only builds with debug
    /// assertions check. If it panics, the matrix is left empty, never half written. `I` should be
    /// the id type of `n_cols` (`with_id_type!`); another one costs a copy of the ids.
    pub(crate) fn rebuild<I: ColumnId, R>(
        &mut self,
        n_cols: usize,
        write: impl FnOnce(&mut CsrBuffers<I, T>) -> R,
    ) -> R {
        let mut buffers = self.take_buffers(n_cols);
        let result = write(&mut buffers);
        self.put_buffers(n_cols, buffers);
        result
    }

    /// Cleared; the matrix is left empty. This and [`put_buffers`](Self::put_buffers) are compiled
    /// once, not for each way to write.
    fn take_buffers<I: ColumnId>(&mut self, n_cols: usize) -> CsrBuffers<I, T> {
        let mut buffers = CsrBuffers {
            indptr: std::mem::take(&mut self.indptr),
            columns: I::take(&mut self.columns),
            values: std::mem::take(&mut self.values),
        };
        buffers.indptr.clear();
        buffers.indptr.push(0);
        buffers.values.clear();
        self.n_cols = n_cols;
        self.columns = ColumnIds::empty(n_cols);
        buffers
    }

    fn put_buffers<I: ColumnId>(&mut self, n_cols: usize, buffers: CsrBuffers<I, T>) {
        let CsrBuffers { indptr, columns, values } = buffers;
        let columns = I::into_ids(columns);
        debug_assert_eq!(
            with_column_ids!(columns.view(), |ids| check(n_cols, &indptr, ids, values.len())),
            Ok(()),
            "a kernel broke the invariant of csr"
        );
        self.indptr = indptr;
        self.columns = columns.into_width(n_cols);
        self.values = values;
    }
}

/// The arrays of a [`Csr`] while a kernel rewrites them.
pub(crate) struct CsrBuffers<I, T> {
    pub(crate) indptr: Vec<u64>,
    pub(crate) columns: Vec<I>,
    pub(crate) values: Vec<T>,
}

impl<I, T> CsrBuffers<I, T> {
    /// One more entry of the row being written.
    #[inline]
    pub(crate) fn push(&mut self, column: I, value: T) {
        self.columns.push(column);
        self.values.push(value);
    }

    /// The row being written is complete.
    #[inline]
    pub(crate) fn finish_row(&mut self) {
        self.indptr.push(self.values.len() as u64);
    }
}

/// No rows, no columns, no memory.
impl<T: Stored, D: Device> Default for Csr<T, D> {
    fn default() -> Self {
        Csr {
            n_cols: 0,
            indptr: D::Buffer::default(),
            columns: D::ColumnIds::default(),
            values: D::Buffer::default(),
        }
    }
}

/// The same size, pattern and values (so that a stored zero differs from none, and NaN from
/// itself).
impl<T: Stored> PartialEq for Csr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.n_cols == other.n_cols
            && self.indptr() == other.indptr()
            && self.columns() == other.columns()
            && self.values == other.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_take_the_width_of_the_matrix() {
        let narrow =
            Csr::new(1 << 32, vec![0, 1], vec![u64::from(u32::MAX)], vec![1.0f32]).unwrap();
        assert!(matches!(narrow.columns(), ColumnIdsView::U32(&[u32::MAX])));
        let wide = Csr::new((1 << 32) + 1, vec![0, 1], vec![1usize << 32], vec![1.0f32]).unwrap();
        assert!(matches!(wide.columns(), ColumnIdsView::U64(&[4294967296])));
        let widened = Csr::new((1 << 32) + 1, vec![0, 1], vec![7u32], vec![1.0f32]).unwrap();
        assert!(matches!(widened.columns(), ColumnIdsView::U64(&[7])));
        assert_eq!(Csr::from_parts(wide.clone().into_parts()), Ok(wide));
    }

    #[test]
    fn coo_names_the_entry_that_is_outside() {
        let error = Csr::from_coo(2, 3, [(0, 0, 1.0f32), (1, 3, 2.0)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "entry 1 is at (1, 3), outside of the matrix of 2 rows and 3 columns (numbered from 0)"
        );
        let empty = Csr::<f32>::from_coo(3, 0, []).unwrap();
        assert_eq!((empty.indptr(), empty.nnz()), (&[0, 0, 0, 0][..], 0));
    }

    #[test]
    fn rebuild_reuses_memory_and_survives_a_panic() {
        let mut x = Csr::from_coo(2, 3, [(0, 1, 1.0f32), (1, 2, 2.0)]).unwrap();
        let buffer = x.values().as_ptr();
        x.rebuild::<u32, _>(5, |parts| {
            parts.push(4, 9.0);
            parts.finish_row();
        });
        assert_eq!(x, Csr::new(5, vec![0, 1], vec![4u32], vec![9.0]).unwrap());
        assert_eq!(x.values().as_ptr(), buffer);

        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            x.rebuild::<u32, ()>(5, |parts| {
                parts.push(3, 1.0);
                panic!("a kernel failed half way");
            })
        }));
        assert!(panicked.is_err());
        assert_eq!((x.n_rows(), x.nnz(), x.indptr()), (0, 0, &[0][..]));
        x.rebuild::<u64, _>(5, |parts| parts.finish_row());
        assert!(matches!(x.columns(), ColumnIdsView::U32(_)));
    }

    #[test]
    fn rows_beyond_memory_are_errors() {
        for n_rows in [usize::MAX, usize::MAX / 8, 1 << 58] {
            let error = Csr::<f32>::from_coo(n_rows, 3, []).unwrap_err();
            assert!(matches!(error, FormatError::OutOfMemory { what: ROW_POINTERS, .. }));
        }
    }

    #[test]
    #[should_panic(expected = "no memory for the row pointers")]
    fn zeros_panic_where_from_coo_returns_the_error() {
        let _ = Csr::<f32>::zeros(usize::MAX, 3);
    }

    #[test]
    fn a_matrix_without_rows_has_an_indptr() {
        let x = Csr::<f32>::default();
        assert_eq!((x.n_rows(), x.indptr(), x.view().n_rows()), (0, &[0][..], 0));
        assert_eq!(x, Csr::zeros(0, 0));
        assert_eq!(x.into_parts().indptr, [0]);
    }
}
