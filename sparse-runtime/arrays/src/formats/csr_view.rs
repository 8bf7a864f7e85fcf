//! Borrowed csr: a whole matrix, a run of its rows, or a gathered selection of them.

use super::csr_check::check;
use super::dense::check_rows;
use super::ids::ColumnIndex;
use super::{ColumnIdsView, Csr, DividedRows, FormatError};
use crate::device::{Cpu, Device, Run};
use sparse_core::element::{Factor, Float, Stored, Unit};
use std::iter::FusedIterator;
use std::ops::Range;

/// A borrowed csr matrix, or a selection of rows of one.
///
/// In the four-array form: row `i` is `starts[i]..ends[i]` of the columns and values, so that a run
/// of rows is two overlapping slices of one `indptr`, and a shuffled batch is two gathered ones,
/// without touching the non-zeros.
///
/// Invariant: as [`Csr`], row by row; `starts[i] <= ends[i] <= columns.len()`. The ids of a view
/// may be of either width, whatever `n_cols` is.
#[derive(Clone, Copy)]
pub struct CsrView<'a, T: Stored = f32, D: Device = Cpu> {
    pub(super) n_cols: usize,
    pub(super) starts: D::Slice<'a, u64>,
    pub(super) ends: D::Slice<'a, u64>,
    pub(super) columns: D::ColumnIdsSlice<'a>,
    pub(super) values: D::Slice<'a, T>,
    /// A hint: bounds of entries that will be read soon. Not part of the view's content.
    pub(super) upcoming: (u64, u64),
    /// The entries once more, divided by threads, if the data has them.
    pub(super) divided: Option<DividedRows<'a, T>>,
}

/// On any device.
impl<'a, T: Stored, D: Device> CsrView<'a, T, D> {
    /// The number of rows.
    #[inline]
    pub fn n_rows(&self) -> usize {
        self.starts.len()
    }

    /// The number of columns.
    #[inline]
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Where each row starts in [`columns`](CsrView::columns) and [`values`](CsrView::values).
    #[inline]
    pub fn starts(&self) -> D::Slice<'a, u64> {
        self.starts
    }

    /// Where each row ends in [`columns`](CsrView::columns) and [`values`](CsrView::values).
    #[inline]
    pub fn ends(&self) -> D::Slice<'a, u64> {
        self.ends
    }

    /// The columns of all stored entries of the matrix behind the view, also of rows that are not
    /// in it.
    #[inline]
    pub fn columns(&self) -> D::ColumnIdsSlice<'a> {
        self.columns
    }

    /// The values of all stored entries of the matrix behind the view, also of rows that are not in
    /// it.
    #[inline]
    pub fn values(&self) -> D::Slice<'a, T> {
        self.values
    }
}

impl<'a, T: Stored> CsrView<'a, T> {
    /// A view of borrowed arrays, every invariant checked, in O(n_rows + nnz).
    ///
    /// # Errors
    ///
    /// As [`Csr::new`].
    ///
    /// ```
    /// use nnz::formats::CsrView;
    /// let (indptr, columns, values) = ([0, 2, 3], [1u32, 3, 0], [2.0f32, 1.5, 4.0]);
    /// let x = CsrView::new(4, &indptr, &columns[..], &values)?;
    /// assert_eq!((x.n_rows(), x.nnz()), (2, 3));
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn new<C: ColumnIndex>(
        n_cols: usize,
        indptr: &'a [u64],
        columns: &'a [C],
        values: &'a [T],
    ) -> Result<Self, FormatError>
    where
        &'a [C]: Into<ColumnIdsView<'a>>,
    {
        check(n_cols, indptr, columns, values.len())?;
        Ok(CsrView {
            n_cols,
            starts: &indptr[..indptr.len() - 1],
            ends: &indptr[1..],
            columns: columns.into(),
            values,
            upcoming: (0, 0),
            divided: None,
        })
    }

    /// The arrays, as a borrow that may become shorter.
    pub fn arrays(self) -> CsrArrays<'a, T> {
        CsrArrays {
            n_cols: self.n_cols,
            starts: self.starts,
            ends: self.ends,
            columns: self.columns,
            values: self.values,
        }
    }

    /// Rows of this view's matrix, by their bounds.
    ///
    /// Invariant, for the caller to keep: both slices are equally long, and `(starts[i], ends[i])`
    /// are, for some `j`, `(self.starts()[j], self.ends()[j])`. Builds with debug assertions check
    /// what can be checked.
    pub fn with_rows(&self, starts: &'a [u64], ends: &'a [u64]) -> CsrView<'a, T> {
        debug_assert_eq!(starts.len(), ends.len());
        debug_assert!(
            starts
                .iter()
                .zip(ends)
                .all(|(&start, &end)| start <= end && end <= self.values.len() as u64)
        );
        CsrView { starts, ends, divided: None, ..*self }
    }

    /// The same view, with the entries that a loop over batches will read next, for prefetching.
    /// Any bounds are allowed.
    #[inline]
    pub fn with_upcoming(self, upcoming: (u64, u64)) -> Self {
        CsrView { upcoming, ..self }
    }

    /// The entries of [`with_upcoming`](CsrView::with_upcoming); possibly none, possibly outside of
    /// the matrix.
    #[inline]
    pub fn upcoming(&self) -> Range<usize> {
        self.upcoming.0 as usize..self.upcoming.1 as usize
    }

    /// The same view, with its entries divided as these are.
    ///
    /// Invariant, for the caller to keep: they are of the same rows.
    #[inline]
    pub fn with_divided(self, divided: DividedRows<'a, T>) -> Self {
        debug_assert_eq!(divided.part(0).n_rows(), self.n_rows());
        CsrView { divided: Some(divided), ..self }
    }

    /// The same view, of values that are numbers: `None` of a pattern.
    #[inline]
    pub fn as_numbers<U: Float>(self) -> Option<CsrView<'a, U>>
    where
        T: Factor<U>,
    {
        Some(self.with_values(T::numbers(self.values)?))
    }

    /// The same view, of a pattern: `None` of numbers.
    #[inline]
    pub fn as_pattern<U: Float>(self) -> Option<CsrView<'a, Unit>>
    where
        T: Factor<U>,
    {
        Some(self.with_values(<T as Factor<U>>::units(self.values)?))
    }

    /// The same view, of its values under another name of their type.
    fn with_values<U: Stored>(self, values: &'a [U]) -> CsrView<'a, U> {
        CsrView {
            n_cols: self.n_cols,
            starts: self.starts,
            ends: self.ends,
            columns: self.columns,
            values,
            upcoming: self.upcoming,
            divided: self.divided.and_then(DividedRows::of_type),
        }
    }

    /// The entries divided by threads, if the data has them.
    #[inline]
    pub fn divided(&self) -> Option<DividedRows<'a, T>> {
        self.divided
    }

    /// The entries divided by threads, if they are divided among this number.
    #[inline]
    pub fn divided_among(&self, n_parts: usize) -> Option<DividedRows<'a, T>> {
        self.divided.filter(|divided| divided.n_parts() == n_parts)
    }

    /// The number of stored entries in the rows of this view: O(1) for a run of rows, else
    /// O(n_rows).
    pub fn nnz(&self) -> usize {
        if self.is_run() {
            return self.entries().len();
        }
        self.starts.iter().zip(self.ends).map(|(&start, &end)| (end - start) as usize).sum()
    }

    /// The columns of all entries, row by row; a column occurs as often as it is stored.
    pub fn iter_columns(&self) -> impl Iterator<Item = usize> + use<'a, T> {
        let ids = self.columns;
        let ranges = self.starts.iter().zip(self.ends);
        ranges.flat_map(move |(start, end)| {
            (*start as usize..*end as usize).filter_map(move |position| ids.get(position))
        })
    }

    /// The columns and values of row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> Option<(ColumnIdsView<'a>, &'a [T])> {
        let range = *self.starts.get(i)? as usize..*self.ends.get(i)? as usize;
        Some((self.columns.slice(range.clone())?, self.values.get(range)?))
    }

    /// The rows in order, each an iterator over its `(column, value)`.
    pub fn iter_rows(&self) -> impl ExactSizeIterator<Item = RowEntries<'a, T>> + use<'a, T> {
        let view = *self;
        (0..view.n_rows()).map(move |i| {
            let (columns, values) = view.row(i).unwrap_or_default();
            RowEntries { columns, values, next: 0 }
        })
    }

    /// A run of rows, in O(1).
    ///
    /// # Errors
    ///
    /// [`FormatError::RowRange`] if the view does not have them.
    #[inline]
    pub fn rows(&self, range: Range<usize>) -> Result<CsrView<'a, T>, FormatError> {
        check_rows(&range, self.n_rows())?;
        Ok(self.with_rows(&self.starts[range.clone()], &self.ends[range]))
    }

    /// The rows before a row, and those from it on; all and none if there are fewer.
    pub fn split(&self, row: usize) -> (CsrView<'a, T>, CsrView<'a, T>) {
        let row = row.min(self.n_rows());
        let (starts, more_starts) = self.starts.split_at(row);
        let (ends, more_ends) = self.ends.split_at(row);
        (self.with_rows(starts, ends), self.with_rows(more_starts, more_ends))
    }

    /// Whether each row starts where the one before ends, so that the view's entries are one run of
    /// the columns and values. O(1) for a run of rows of one matrix, else O(n_rows).
    pub fn is_contiguous(&self) -> bool {
        self.is_run() || self.starts[1..].iter().zip(self.ends).all(|(start, end)| start == end)
    }

    /// The entries of a contiguous view, as a run of the columns and values.
    pub fn entries(&self) -> Range<usize> {
        match (self.starts.first(), self.ends.last()) {
            (Some(&start), Some(&end)) => start as usize..end as usize,
            _ => 0..0,
        }
    }

    /// Two overlapping slices of one `indptr` (or too few rows for it to matter).
    #[inline]
    pub fn is_run(&self) -> bool {
        self.n_rows() < 2 || self.starts.as_ptr().wrapping_add(1) == self.ends.as_ptr()
    }

    /// An owned matrix with these rows only, in O(n_rows + nnz).
    pub fn to_owned(&self) -> Csr<T> {
        let mut matrix = Csr::default();
        matrix.assign_csr(*self);
        matrix
    }
}

/// The arrays of a view. A view is tied to its lifetime, because the arrays of some device could
/// be. These are not, so that they can be lent for a shorter time.
///
/// Invariant: as [`CsrView`].
#[derive(Clone, Copy, Debug)]
pub struct CsrArrays<'a, T> {
    /// The number of columns.
    pub n_cols: usize,
    /// The first entry of each row.
    pub starts: &'a [u64],
    /// One past the last entry of each row.
    pub ends: &'a [u64],
    /// The column of each entry.
    pub columns: ColumnIdsView<'a>,
    /// The value of each entry.
    pub values: &'a [T],
}

impl<'a, T: Stored> CsrArrays<'a, T> {
    /// The view that they are of.
    #[inline(always)]
    pub fn view(self) -> CsrView<'a, T> {
        CsrView {
            n_cols: self.n_cols,
            starts: self.starts,
            ends: self.ends,
            columns: self.columns,
            values: self.values,
            upcoming: (0, 0),
            divided: None,
        }
    }
}

/// The `(column, value)` of one row.
#[derive(Clone, Debug)]
pub struct RowEntries<'a, T> {
    columns: ColumnIdsView<'a>,
    values: &'a [T],
    next: usize,
}

impl<T: Copy> Iterator for RowEntries<'_, T> {
    type Item = (usize, T);

    #[inline]
    fn next(&mut self) -> Option<(usize, T)> {
        let entry = (self.columns.get(self.next)?, *self.values.get(self.next)?);
        self.next += 1;
        Some(entry)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.values.len() - self.next;
        (left, Some(left))
    }
}

impl<T: Copy> ExactSizeIterator for RowEntries<'_, T> {}
impl<T: Copy> FusedIterator for RowEntries<'_, T> {}

/// No rows, no columns.
impl<T: Stored> Default for CsrView<'_, T> {
    fn default() -> Self {
        CsrView {
            n_cols: 0,
            starts: &[],
            ends: &[],
            columns: ColumnIdsView::default(),
            values: &[],
            upcoming: (0, 0),
            divided: None,
        }
    }
}

impl<'a, T: Stored> From<&'a Csr<T>> for CsrView<'a, T> {
    fn from(matrix: &'a Csr<T>) -> Self {
        matrix.view()
    }
}

/// The same size, pattern and values, row by row, wherever they lie.
impl<T: Stored> PartialEq for CsrView<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.n_cols == other.n_cols
            && self.n_rows() == other.n_rows()
            && (0..self.n_rows()).all(|i| self.row(i) == other.row(i))
    }
}

/// The bounds of some rows of a matrix, in any order and any number of times: a shuffled batch.
///
/// Holds the two buffers, so that a training loop allocates nothing after its largest batch.
///
/// ```
/// use nnz::formats::{Csr, RowSelection};
/// let x = Csr::from_coo(3, 2, [(0, 0, 1.0f32), (1, 1, 2.0), (2, 0, 3.0)])?;
/// let mut selection = RowSelection::new();
/// let batch = selection.gather(&x, &[2, 0])?;
/// assert_eq!((batch.n_rows(), batch.row(0)), (2, x.row(2)));
/// # Ok::<(), nnz::formats::FormatError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RowSelection {
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl RowSelection {
    /// No rows, no memory.
    pub fn new() -> Self {
        RowSelection::default()
    }

    /// The given rows of a matrix or view, in the order given, without touching its entries.
    /// O(number of rows).
    ///
    /// # Errors
    ///
    /// [`FormatError::RowOutOfRange`].
    pub fn gather<'a, T: Stored>(
        &'a mut self,
        matrix: impl Into<CsrView<'a, T>>,
        rows: &[usize],
    ) -> Result<CsrView<'a, T>, FormatError> {
        let matrix = matrix.into();
        self.starts.clear();
        self.ends.clear();
        self.starts.reserve(rows.len());
        self.ends.reserve(rows.len());
        for &row in rows {
            let (Some(&start), Some(&end)) = (matrix.starts.get(row), matrix.ends.get(row)) else {
                return Err(FormatError::RowOutOfRange { row, n_rows: matrix.n_rows() });
            };
            self.starts.push(start);
            self.ends.push(end);
        }
        // Every pair of bounds was copied from the matrix's own, which is what `with_rows` asks
        // for.
        Ok(matrix.with_rows(&self.starts, &self.ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> Csr {
        Csr::from_rows(
            5,
            [vec![], vec![(0, 1.0), (4, 2.0)], vec![(2, 3.0)], vec![], vec![(1, 4.0), (3, 5.0)]],
        )
        .unwrap()
    }

    #[test]
    fn runs_of_rows() {
        let x = matrix();
        let run = x.view().rows(1..4).unwrap();
        assert_eq!((run.n_rows(), run.nnz(), run.is_contiguous()), (3, 3, true));
        assert_eq!(run.row(1), Some((ColumnIdsView::U32(&[2]), &[3.0][..])));
        assert_eq!(run.rows(1..2).unwrap().row(0), run.row(1));
        assert_eq!(x.view().rows(5..5).unwrap().nnz(), 0);
        assert_eq!(
            run.rows(2..4).map(|_| ()),
            Err(FormatError::RowRange { start: 2, end: 4, n_rows: 3 })
        );
        let reversed = Range { start: 2, end: 1 };
        assert!(run.rows(reversed).is_err());
    }

    #[test]
    fn selections_repeat_reorder_and_nest() {
        let x = matrix();
        let (mut outer, mut inner) = (RowSelection::new(), RowSelection::new());
        let picked = outer.gather(&x, &[4, 4, 0, 2]).unwrap();
        assert_eq!((picked.nnz(), picked.is_contiguous()), (5, false));
        let again = inner.gather(picked, &[3, 0]).unwrap();
        assert_eq!(
            again.to_owned(),
            Csr::from_rows(5, [vec![(2, 3.0)], vec![(1, 4.0), (3, 5.0)]]).unwrap()
        );
        let consecutive = outer.gather(&x, &[1, 2, 3]).unwrap();
        assert!(consecutive.is_contiguous());
        assert_eq!(consecutive, x.view().rows(1..4).unwrap());
        assert_eq!(
            outer.gather(&x, &[5]).map(|_| ()),
            Err(FormatError::RowOutOfRange { row: 5, n_rows: 5 })
        );
    }

    #[test]
    fn views_of_foreign_arrays_are_checked() {
        let (indptr, values) = ([0, 1, 2], [1.0f32, 2.0]);
        assert!(CsrView::new(3, &indptr, &[0u64, 3], &values).is_err());
        let wide = CsrView::new(3, &indptr, &[0u64, 2], &values).unwrap();
        let narrow = wide.to_owned();
        assert!(matches!(narrow.columns(), ColumnIdsView::U32(&[0, 2])));
        assert_eq!(wide, narrow.view());
    }

    #[test]
    fn rows_iterate() {
        let x = matrix();
        let entries: Vec<(usize, usize, f32)> = x
            .iter_rows()
            .enumerate()
            .flat_map(|(row, entries)| entries.map(move |(column, value)| (row, column, value)))
            .collect();
        assert_eq!(Csr::from_coo(5, 5, entries), Ok(x));
    }
}
