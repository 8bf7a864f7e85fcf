//! `row_sparse`: some rows of a larger array.

use super::memory::{ROW_IDS, make_room};
use super::{DenseView, Elements, FormatError, Shape};
use crate::device::{Cpu, Device, Run};
use sparse_core::element::{Element, Float};

/// Some rows of a larger array; the others are zero.
///
/// Invariant: row ids ascend strictly and are below `shape.n_rows()`; `values` holds one row of
/// `shape.row_size()` elements for each id, in order.
///
/// ```
/// use nnz::formats::RowSparse;
/// let gradient = RowSparse::new([1_000_000, 2], vec![3, 70_000], vec![1.0f32, 2.0, 3.0, 4.0])?;
/// assert_eq!(gradient.n_stored(), 2);
/// assert_eq!(gradient.row(70_000), Some(&[3.0, 4.0][..]));
/// assert_eq!(gradient.row(4), None);
/// # Ok::<(), nnz::formats::FormatError>(())
/// ```
#[derive(Clone)]
pub struct RowSparse<T: Element = f32, D: Device = Cpu> {
    pub(super) shape: Shape,
    pub(super) indices: D::Buffer<u64>,
    pub(super) values: D::Elements<T>,
}

/// A borrowed row_sparse array.
#[derive(Clone, Copy)]
pub struct RowSparseView<'a, T: Element = f32, D: Device = Cpu> {
    pub(super) shape: Shape,
    pub(super) indices: RowIdsView<'a, D>,
    pub(super) values: D::Slice<'a, T>,
}

/// The row ids of a view.
#[derive(Clone, Copy, Debug)]
pub enum RowIdsView<'a, D: Device = Cpu> {
    /// Every row is stored: a parameter's table.
    All,
    /// These rows are stored.
    Listed(D::Slice<'a, u64>),
}

/// On any device.
impl<T: Element, D: Device> RowSparse<T, D> {
    /// The extents, including rows that are not stored.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The number of stored rows.
    #[inline]
    pub fn n_stored(&self) -> usize {
        D::slice(&self.indices).len()
    }

    /// Borrowed.
    #[inline]
    pub fn view(&self) -> RowSparseView<'_, T, D> {
        RowSparseView {
            shape: self.shape,
            indices: RowIdsView::Listed(D::slice(&self.indices)),
            values: D::elements(&self.values),
        }
    }
}

impl<T: Element> RowSparse<T> {
    /// An array from the ids of its stored rows, ascending, and one row of values for each.
    ///
    /// # Errors
    ///
    /// [`FormatError`], with the position and bound, for unsorted, repeated or too large row ids,
    /// or another number of values.
    pub fn new(
        shape: impl Into<Shape>,
        indices: Vec<u64>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        let shape = shape.into();
        check(shape, &indices, values.len())?;
        Ok(RowSparse { shape, indices, values: values.into() })
    }

    /// An array from row ids in any order and one row of values for each; rows of the same id are
    /// added in the order given. O(k log k + k · row size) for k rows.
    ///
    /// # Errors
    ///
    /// [`FormatError::RowIdOutOfRange`] and [`FormatError::StoredValueCount`].
    ///
    /// ```
    /// use nnz::formats::RowSparse;
    /// let rows = vec![1.0f32, 1.0, 5.0, 6.0, 0.5, 0.0];
    /// let sum = RowSparse::from_unsorted([9, 2], vec![7, 2, 7], rows)?;
    /// assert_eq!(sum, RowSparse::new([9, 2], vec![2, 7], vec![5.0, 6.0, 1.5, 1.0])?);
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn from_unsorted(
        shape: impl Into<Shape>,
        indices: Vec<u64>,
        values: Vec<T>,
    ) -> Result<Self, FormatError>
    where
        T: Float,
    {
        let shape = shape.into();
        check_count(shape, indices.len(), values.len())?;
        for (position, &row) in indices.iter().enumerate() {
            check_row_id(shape.n_rows(), position, None, row)?;
        }
        // Stable, so that rows of the same id are added in the order given.
        let mut order: Vec<usize> = (0..indices.len()).collect();
        order.sort_by_key(|&position| indices[position]);

        let row_size = shape.row_size();
        let mut array = RowSparse::zeros(shape);
        array.rebuild(shape, |ids, sums| {
            for position in order {
                let row = &values[position * row_size..(position + 1) * row_size];
                if ids.last() == Some(&indices[position]) {
                    let start = sums.len() - row_size;
                    for (sum, &value) in sums[start..].iter_mut().zip(row) {
                        *sum += value;
                    }
                } else {
                    ids.push(indices[position]);
                    sums.extend_from_slice(row);
                }
            }
        });
        Ok(array)
    }

    /// An array that stores no rows.
    pub fn zeros(shape: impl Into<Shape>) -> Self {
        RowSparse { shape: shape.into(), indices: Vec::new(), values: Elements::default() }
    }

    /// The ids of the stored rows, ascending.
    #[inline]
    pub fn indices(&self) -> &[u64] {
        &self.indices
    }

    /// The stored rows, one after the other.
    #[inline]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The stored rows, for writing; the set of stored rows stays.
    #[inline]
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// The row ids, and the values for writing.
    pub(crate) fn parts_mut(&mut self) -> (&[u64], &mut [T]) {
        (&self.indices, &mut self.values)
    }

    /// Row `id` of the whole array if it is stored, in O(log n_stored).
    #[inline]
    pub fn row(&self, id: usize) -> Option<&[T]> {
        self.view().row(id)
    }

    /// The ids and values of the stored rows, without copying; values that begin at a cache line
    /// are moved to the front of their memory.
    pub fn into_parts(self) -> (Shape, Vec<u64>, Vec<T>) {
        (self.shape, self.indices, self.values.into())
    }

    /// Becomes an array of this shape that stores no rows, keeping its allocations.
    pub fn reset(&mut self, shape: impl Into<Shape>) {
        self.shape = shape.into();
        self.indices.clear();
        self.values.truncate(0);
    }

    /// Becomes an array of this shape that stores the rows of these ids, all zero, keeping its
    /// allocations. Returns the values, one row for each id, to be written. O(ids + values).
    ///
    /// # Panics
    ///
    /// If the ids do not ascend strictly, or are not below the rows of the shape.
    ///
    /// ```
    /// use nnz::formats::RowSparse;
    /// let mut gradient = RowSparse::<f32>::zeros([9, 2]);
    /// gradient.reset_to_rows([9, 2], [2, 7]).copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
    /// assert_eq!(gradient.row(7), Some(&[3.0, 4.0][..]));
    /// ```
    pub fn reset_to_rows(
        &mut self,
        shape: impl Into<Shape>,
        ids: impl IntoIterator<Item = u64>,
    ) -> &mut [T] {
        let shape = shape.into();
        self.reset(shape);
        let mut indices = std::mem::take(&mut self.indices);
        indices.extend(ids);
        let found = check_row_ids(shape.n_rows(), &indices);
        assert!(found.is_ok(), "rows of a row_sparse array: {found:?}");
        let n_values = indices.len() * shape.row_size();
        self.indices = indices;
        self.values.rewrite(|values| values.resize(n_values, T::default()));
        &mut self.values
    }

    /// Rewrites the array in its own allocations: `write` gets cleared row ids and values.
    ///
    /// The result must be canonical, as the type's invariant says; only builds with debug
    /// assertions check. If it panics, the array stores nothing, never half a result.
    pub(crate) fn rebuild<R>(
        &mut self,
        shape: impl Into<Shape>,
        write: impl FnOnce(&mut Vec<u64>, &mut Vec<T>) -> R,
    ) -> R {
        self.rebuild_lines(shape, |indices, values| values.rewrite(|values| write(indices, values)))
    }

    /// [`rebuild`](Self::rebuild) with values that may begin at a cache line.
    pub(crate) fn rebuild_lines<R>(
        &mut self,
        shape: impl Into<Shape>,
        write: impl FnOnce(&mut Vec<u64>, &mut Elements<T>) -> R,
    ) -> R {
        self.reset(shape);
        let mut indices = std::mem::take(&mut self.indices);
        let mut values = std::mem::take(&mut self.values);
        let result = write(&mut indices, &mut values);
        self.put_back(indices, values);
        result
    }

    /// Compiled once, not for each kind of `write`.
    fn put_back(&mut self, indices: Vec<u64>, values: Elements<T>) {
        debug_assert_eq!(
            check(self.shape, &indices, values.len()),
            Ok(()),
            "a kernel broke the invariant of row_sparse"
        );
        self.indices = indices;
        self.values = values;
    }
}

/// On any device.
impl<'a, T: Element, D: Device> RowSparseView<'a, T, D> {
    /// The extents, including rows that are not stored.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The stored rows.
    #[inline]
    pub fn indices(&self) -> RowIdsView<'a, D> {
        self.indices
    }

    /// The stored rows, one after the other.
    #[inline]
    pub fn values(&self) -> D::Slice<'a, T> {
        self.values
    }

    /// The number of stored rows.
    #[inline]
    pub fn n_stored(&self) -> usize {
        match self.indices {
            RowIdsView::All => self.shape.n_rows(),
            RowIdsView::Listed(ids) => ids.len(),
        }
    }
}

impl<'a, T: Element> RowSparseView<'a, T> {
    /// A view of borrowed row ids and values, every invariant checked, in O(rows stored).
    ///
    /// # Errors
    ///
    /// As [`RowSparse::new`].
    pub fn new(
        shape: impl Into<Shape>,
        indices: &'a [u64],
        values: &'a [T],
    ) -> Result<Self, FormatError> {
        let shape = shape.into();
        check(shape, indices, values.len())?;
        Ok(RowSparseView { shape, indices: RowIdsView::Listed(indices), values })
    }

    /// A view of a table of all rows.
    ///
    /// # Errors
    ///
    /// [`FormatError::ValueCount`] if there are not as many values as the shape has elements.
    pub fn all(shape: impl Into<Shape>, values: &'a [T]) -> Result<Self, FormatError> {
        let table = DenseView::new(shape, values)?;
        Ok(RowSparseView::table(table.shape, values))
    }

    /// A view of a table of all rows that is known to have `shape.size()` values. Panics otherwise,
    /// like that of a dense array.
    #[inline]
    pub fn table(shape: Shape, values: &'a [T]) -> Self {
        assert_eq!(shape.size(), values.len(), "a table of another form");
        RowSparseView { shape, indices: RowIdsView::All, values }
    }

    /// The id of the stored row at a position.
    #[inline]
    pub fn row_id(&self, position: usize) -> Option<usize> {
        match self.indices {
            RowIdsView::All => (position < self.shape.n_rows()).then_some(position),
            RowIdsView::Listed(ids) => ids.get(position).map(|&id| id as usize),
        }
    }

    /// The position of row `id` among the stored rows: O(1) where all are, else O(log n_stored).
    #[inline]
    pub fn find(&self, id: usize) -> Option<usize> {
        match self.indices {
            RowIdsView::All => (id < self.shape.n_rows()).then_some(id),
            RowIdsView::Listed(ids) => ids.binary_search(&(id as u64)).ok(),
        }
    }

    /// The stored row at a position.
    #[inline]
    pub fn stored_row(&self, position: usize) -> Option<&'a [T]> {
        let row_size = self.shape.row_size();
        (position < self.n_stored())
            .then(|| &self.values[position * row_size..(position + 1) * row_size])
    }

    /// Row `id` of the whole array if it is stored.
    #[inline]
    pub fn row(&self, id: usize) -> Option<&'a [T]> {
        self.stored_row(self.find(id)?)
    }

    /// The stored rows in order: id and elements.
    pub fn iter_rows(&self) -> impl ExactSizeIterator<Item = (usize, &'a [T])> + use<'a, T> {
        let view = *self;
        (0..view.n_stored()).map(move |position| {
            (
                view.row_id(position).unwrap_or_default(),
                view.stored_row(position).unwrap_or_default(),
            )
        })
    }

    /// An owned copy; a table of all rows becomes one that lists them all.
    ///
    /// # Panics
    ///
    /// If there is no memory for a list of all rows: rows without elements may be more than that.
    /// [`to_row_sparse`](Self::to_row_sparse) returns the error.
    #[track_caller]
    pub fn to_owned(&self) -> RowSparse<T> {
        match self.to_row_sparse() {
            Ok(array) => array,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The ids of all rows.
pub(super) fn all_ids(shape: Shape) -> Result<Vec<u64>, FormatError> {
    let mut ids = Vec::new();
    make_room(&mut ids, shape.n_rows(), ROW_IDS, shape)?;
    ids.extend(0..shape.n_rows() as u64);
    Ok(ids)
}

fn check(shape: Shape, indices: &[u64], n_values: usize) -> Result<(), FormatError> {
    check_count(shape, indices.len(), n_values)?;
    check_row_ids(shape.n_rows(), indices)
}

/// Checks that row ids ascend and are below the number of rows.
pub(super) fn check_row_ids(n_rows: usize, ids: &[u64]) -> Result<(), FormatError> {
    let mut previous = None;
    for (position, &row) in ids.iter().enumerate() {
        check_row_id(n_rows, position, previous, row)?;
        previous = Some(row);
    }
    Ok(())
}

fn check_count(shape: Shape, stored: usize, found: usize) -> Result<(), FormatError> {
    let row_size = shape.row_size();
    if stored.checked_mul(row_size) == Some(found) {
        return Ok(());
    }
    Err(FormatError::StoredValueCount { shape, stored, row_size, found })
}

fn check_row_id(
    n_rows: usize,
    position: usize,
    previous: Option<u64>,
    row: u64,
) -> Result<(), FormatError> {
    match previous {
        _ if row >= n_rows as u64 => Err(FormatError::RowIdOutOfRange { position, row, n_rows }),
        Some(previous) if previous > row => {
            Err(FormatError::RowIdUnsorted { position, row, previous })
        }
        Some(previous) if previous == row => Err(FormatError::RowIdDuplicate { position, row }),
        _ => Ok(()),
    }
}

/// No rows, shape `[0]`.
impl<T: Element, D: Device> Default for RowSparse<T, D> {
    fn default() -> Self {
        RowSparse {
            shape: [0].into(),
            indices: D::Buffer::default(),
            values: D::Elements::default(),
        }
    }
}

/// No rows, shape `[0]`.
impl<T: Element> Default for RowSparseView<'_, T> {
    fn default() -> Self {
        RowSparseView { shape: [0].into(), indices: RowIdsView::All, values: &[] }
    }
}

impl<'a, T: Element> From<&'a RowSparse<T>> for RowSparseView<'a, T> {
    fn from(array: &'a RowSparse<T>) -> Self {
        array.view()
    }
}

/// The same shape, stored rows and values (so that a stored row of zeros differs from none, and NaN
/// from itself).
impl<T: Element> PartialEq for RowSparse<T> {
    fn eq(&self, other: &Self) -> bool {
        self.view() == other.view()
    }
}

/// The same shape, stored rows and values, whether all rows are listed or not.
impl<T: Element> PartialEq for RowSparseView<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        let same_ids = || match (self.indices, other.indices) {
            (RowIdsView::All, RowIdsView::All) => true,
            (RowIdsView::Listed(left), RowIdsView::Listed(right)) => left == right,
            // Ascending and below the number of rows: as many are all.
            _ => self.n_stored() == other.n_stored(),
        };
        self.shape == other.shape && same_ids() && self.values == other.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(indices: &[u64], n_values: usize) -> FormatError {
        RowSparse::new([5, 2], indices.to_vec(), vec![0.0f32; n_values]).unwrap_err()
    }

    #[test]
    fn every_invariant_has_its_error() {
        assert_eq!(
            error(&[1, 5], 4),
            FormatError::RowIdOutOfRange { position: 1, row: 5, n_rows: 5 }
        );
        assert_eq!(
            error(&[3, 1], 4),
            FormatError::RowIdUnsorted { position: 1, row: 1, previous: 3 }
        );
        assert_eq!(error(&[3, 3], 4), FormatError::RowIdDuplicate { position: 1, row: 3 });
        assert_eq!(
            error(&[3], 3),
            FormatError::StoredValueCount {
                shape: [5, 2].into(),
                stored: 1,
                row_size: 2,
                found: 3
            }
        );
        assert!(RowSparse::<f32>::new([2, usize::MAX, 4], vec![0], vec![]).is_err());
        assert!(RowSparse::from_unsorted([5, 2], vec![9, 0], vec![0.0f32; 4]).is_err());
    }

    #[test]
    fn a_table_of_all_rows_is_a_view() {
        let values = [1.0f32, 2.0, 3.0, 4.0];
        let table = RowSparseView::all([2, 2], &values).unwrap();
        assert_eq!((table.n_stored(), table.row_id(1), table.find(2)), (2, Some(1), None));
        assert_eq!(table.row(1), Some(&[3.0, 4.0][..]));
        let owned = table.to_owned();
        assert_eq!((owned.indices(), owned.view()), (&[0, 1][..], table));
        assert!(RowSparseView::all([3, 2], &values).is_err());
    }

    #[test]
    fn rebuild_reuses_memory_and_survives_a_panic() {
        let mut x = RowSparse::new([9, 1], vec![0, 8], vec![1.0f32, 2.0]).unwrap();
        let buffer = x.values().as_ptr();
        x.rebuild([4, 1], |ids, values| {
            ids.push(3);
            values.push(5.0);
        });
        assert_eq!((x.row(3), x.values().as_ptr()), (Some(&[5.0][..]), buffer));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            x.rebuild([4, 1], |ids, _| {
                ids.push(3);
                panic!("a kernel failed half way");
            })
        }));
        assert!(panicked.is_err());
        assert_eq!((x.n_stored(), x.values().len()), (0, 0));
    }

    #[test]
    fn rows_iterate_and_rank_one_works() {
        let x = RowSparse::from_unsorted([6], vec![4, 1, 4], vec![1.0f64, 2.0, 3.0]).unwrap();
        let rows: Vec<_> = x.view().iter_rows().collect();
        assert_eq!(rows, [(1, &[2.0][..]), (4, &[4.0][..])]);
    }
}
