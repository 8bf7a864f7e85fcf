//! Arrays from data and indices in the form of other libraries: checked, with extents given or
//! found.

use super::ids::ColumnIndex;
use super::{Csr, Dense, FormatError, RowSparse, Shape};
use sparse_core::element::{Element, Number, Stored};

impl<T: Element> Dense<T> {
    /// 1 everywhere.
    ///
    /// # Panics
    ///
    /// If the array cannot be addressed, as `Vec` does.
    #[track_caller]
    pub fn ones(shape: impl Into<Shape>) -> Self {
        Dense::full(shape, T::from_number(Number::Integer(1)))
    }

    /// Zeros, for an external shape, which may be too large.
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLarge`], [`FormatError::OutOfMemory`].
    pub fn try_zeros(shape: impl Into<Shape>) -> Result<Self, FormatError> {
        let mut array = Dense::default();
        array.try_reset(shape.into())?;
        Ok(array)
    }
}

impl<T: Stored> Csr<T> {
    /// A matrix that stores nothing, for an external shape, which may be too large.
    ///
    /// # Errors
    ///
    /// [`FormatError::OutOfMemory`] where there is no memory for the row pointers, 8 bytes a row.
    pub fn try_zeros(n_rows: usize, n_cols: usize) -> Result<Self, FormatError> {
        let mut matrix = Csr::default();
        matrix.make_room_for_rows([n_rows, n_cols].into())?;
        matrix.reset(n_rows, n_cols);
        Ok(matrix)
    }

    /// A matrix from its three arrays in the order in which SciPy's
    /// `csr_matrix((data, indices, indptr))` takes them, checked as by [`new`](Csr::new). The
    /// number of columns is the one given, or one past the largest column. O(n_rows + nnz).
    ///
    /// # Errors
    ///
    /// As [`new`](Csr::new).
    ///
    /// ```
    /// use nnz::formats::Csr;
    /// let x = Csr::from_data(vec![7.0f32, 8.0, 9.0], vec![0u32, 2, 1], vec![0, 2, 2, 3], None)?;
    /// assert_eq!((x.n_rows(), x.n_cols()), (3, 3));
    /// let wider = Csr::from_data(vec![7.0f32, 8.0, 9.0], vec![0u32, 2, 1], vec![0, 2, 2, 3], 5)?;
    /// assert_eq!(wider.n_cols(), 5);
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn from_data<C: ColumnIndex>(
        data: Vec<T>,
        indices: Vec<C>,
        indptr: Vec<u64>,
        n_cols: impl Into<Option<usize>>,
    ) -> Result<Self, FormatError> {
        let largest = indices.iter().map(|column| column.to_u64()).max();
        let n_cols = n_cols.into().unwrap_or_else(|| one_past(largest));
        Csr::new(n_cols, indptr, indices, data)
    }
}

impl<T: Element> RowSparse<T> {
    /// An array from its stored rows and their ids, ascending, as MXNet's
    /// `row_sparse_array((data, indices))` takes them. `data` has one row for each id; the other
    /// extents are its own. The number of rows is the one given, or one past the largest id. Moves
    /// `data`; O(number of ids).
    ///
    /// # Errors
    ///
    /// As [`new`](RowSparse::new); [`FormatError::StoredValueCount`] if `data` has another number
    /// of rows.
    ///
    /// ```
    /// use nnz::formats::{Dense, RowSparse};
    /// let data = Dense::from_rows(&[[1.0f32, 2.0], [3.0, 4.0]]);
    /// let x = RowSparse::from_data(data.clone(), vec![1, 4], 6)?;
    /// assert_eq!(x.shape()[..], [6, 2]);
    /// let shorter = RowSparse::from_data(data, vec![1, 4], None)?;
    /// assert_eq!(shorter.shape()[..], [5, 2]);
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn from_data(
        data: Dense<T>,
        indices: Vec<u64>,
        n_rows: impl Into<Option<usize>>,
    ) -> Result<Self, FormatError> {
        let largest = indices.iter().copied().max();
        let n_rows = n_rows.into().unwrap_or_else(|| one_past(largest));
        let shape = data.shape().with_n_rows(n_rows);
        // Rows without elements do not show in the number of values.
        if data.shape().n_rows() != indices.len() {
            return Err(FormatError::StoredValueCount {
                shape,
                stored: indices.len(),
                row_size: shape.row_size(),
                found: data.values().len(),
            });
        }
        RowSparse::new(shape, indices, data.into_values())
    }

    /// A matrix from its stored rows, each an id and its values, with ascending ids.
    ///
    /// # Errors
    ///
    /// As [`new`](RowSparse::new).
    ///
    /// ```
    /// use nnz::formats::RowSparse;
    /// let x = RowSparse::from_rows(6, [(1, [1.0f32, 2.0]), (4, [3.0, 4.0])])?;
    /// assert_eq!((x.shape()[..].to_vec(), x.indices()), (vec![6, 2], &[1, 4][..]));
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn from_rows<const N: usize>(
        n_rows: usize,
        rows: impl IntoIterator<Item = (usize, [T; N])>,
    ) -> Result<Self, FormatError> {
        let (indices, rows): (Vec<u64>, Vec<[T; N]>) =
            rows.into_iter().map(|(id, row)| (id as u64, row)).unzip();
        RowSparse::new([n_rows, N], indices, rows.into_flattened())
    }
}

/// The extent that an id needs; one that no array has leaves the id out of range.
fn one_past(largest: Option<u64>) -> usize {
    largest.map_or(0, |id| usize::try_from(id).unwrap_or(usize::MAX).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::memory::ELEMENTS;

    #[test]
    fn extents_are_found_or_checked() {
        let csr = |n_cols: Option<usize>| {
            Csr::from_data(vec![1.0f32, 2.0], vec![4u64, 0], vec![0, 1, 2], n_cols)
        };
        assert_eq!(csr(None).unwrap().n_cols(), 5);
        assert!(matches!(csr(Some(4)), Err(FormatError::ColumnOutOfRange { column: 4, .. })));
        let none = Csr::<f32>::from_data(vec![], Vec::<u32>::new(), vec![0, 0], None).unwrap();
        assert_eq!((none.n_rows(), none.n_cols()), (1, 0));
        let largest = Csr::from_data(vec![1.0f32], vec![u64::MAX], vec![0, 1], None);
        assert!(matches!(largest, Err(FormatError::ColumnOutOfRange { .. })));

        let cube = Dense::new([2, 3, 2], (0..12).map(f64::from).collect()).unwrap();
        let x = RowSparse::from_data(cube.clone(), vec![0, 7], None).unwrap();
        assert_eq!((x.shape()[..].to_vec(), x.row(7)), (vec![8, 3, 2], cube.row(1)));
        let rows = RowSparse::from_data(Dense::from(vec![1.0f32]), vec![2], 5).unwrap();
        assert_eq!(rows, RowSparse::new([5], vec![2], vec![1.0]).unwrap());
        let none = RowSparse::from_data(Dense::<f32>::zeros([0, 3]), vec![], None).unwrap();
        assert_eq!(none, RowSparse::zeros([0, 3]));
        let largest = RowSparse::from_data(Dense::<f32>::zeros([1, 2]), vec![u64::MAX], None);
        assert!(matches!(largest, Err(FormatError::RowIdOutOfRange { .. })));
    }

    #[test]
    fn one_row_an_id() {
        let error = RowSparse::from_data(Dense::<f32>::ones([2, 2]), vec![0, 1, 2, 3], 4);
        let error = error.unwrap_err().to_string();
        assert_eq!(
            error,
            "4 stored rows of 2 elements (shape [4, 2]) need 4 × 2 values, but 4 were given"
        );
        assert!(RowSparse::from_data(Dense::<f32>::zeros([3, 0]), vec![0], 4).is_err());
        assert!(RowSparse::from_rows(4, [(2, [1.0f32]), (1, [2.0])]).is_err());
        assert!(RowSparse::from_rows(2, [(2, [1.0f32])]).is_err());
    }

    #[test]
    fn zeros_of_a_shape_from_outside() {
        assert_eq!(Dense::<f32>::try_zeros([2, 3]).unwrap(), Dense::zeros([2, 3]));
        let error = Dense::<f32>::try_zeros([usize::MAX, 2]).unwrap_err();
        assert!(matches!(error, FormatError::TooLarge { .. }));
        let error = Dense::<f32>::try_zeros([1 << 58]).unwrap_err();
        assert!(matches!(error, FormatError::OutOfMemory { what: ELEMENTS, .. }));
        let error = Csr::<f32>::try_zeros(1 << 58, 2).unwrap_err();
        assert!(matches!(error, FormatError::OutOfMemory { .. }), "{error}");
        assert_eq!(Csr::<f32>::try_zeros(3, 2).unwrap(), Csr::zeros(3, 2));
    }

    #[test]
    #[should_panic(
        expected = "there is no memory for the elements of an array of shape [288230376151711744]"
    )]
    fn zeros_that_do_not_fit_in_memory_can_be_caught() {
        let _ = Dense::<f32>::zeros([1 << 58]);
    }
}
