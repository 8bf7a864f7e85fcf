//! Rows of an array: runs, and lists of them.

use super::dense::check_rows;
use super::memory::{ELEMENTS, ROW_IDS, make_room};
use super::row_sparse::{all_ids, check_row_ids};
use super::{Csr, CsrView, Dense, DenseView, FormatError, RowIdsView, RowSparse, RowSparseView};
use sparse_core::element::{Element, Stored};
use std::ops::Range;

impl<T: Element> Dense<T> {
    /// A run of rows, in O(1).
    ///
    /// # Errors
    ///
    /// [`FormatError::RowRange`] if the array does not have them.
    pub fn rows(&self, range: Range<usize>) -> Result<DenseView<'_, T>, FormatError> {
        self.view().rows(range)
    }
}

impl<T: Stored> Csr<T> {
    /// A run of rows, in O(1). [`to_owned`](CsrView::to_owned) copies it into a matrix.
    ///
    /// # Errors
    ///
    /// [`FormatError::RowRange`] if the matrix does not have them.
    ///
    /// ```
    /// use nnz::formats::Csr;
    /// let x = Csr::from_coo(4, 3, [(0, 0, 1.0f32), (2, 1, 2.0), (3, 2, 3.0)])?;
    /// let tail = x.rows(2..4)?;
    /// assert_eq!((tail.n_rows(), tail.get(0, 1)), (2, Some(2.0)));
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn rows(&self, range: Range<usize>) -> Result<CsrView<'_, T>, FormatError> {
        self.view().rows(range)
    }
}

impl<T: Element> RowSparseView<'_, T> {
    /// The array of a run of rows, whose ids count from the first of them. A copy: the ids change.
    /// O(log n_stored + values copied).
    ///
    /// # Errors
    ///
    /// [`FormatError::RowRange`] if the array does not have them; [`FormatError::OutOfMemory`].
    pub fn slice_rows(&self, range: Range<usize>) -> Result<RowSparse<T>, FormatError> {
        check_rows(&range, self.shape.n_rows())?;
        let first = range.start as u64;
        let (stored, indices) = match self.indices {
            RowIdsView::All => (range.clone(), all_ids(self.shape.with_n_rows(range.len()))?),
            RowIdsView::Listed(ids) => {
                let position = |bound: usize| ids.partition_point(|&id| id < bound as u64);
                let stored = position(range.start)..position(range.end);
                let indices = ids[stored.clone()].iter().map(|id| id - first).collect();
                (stored, indices)
            }
        };
        let row_size = self.shape.row_size();
        Ok(RowSparse {
            shape: self.shape.with_n_rows(range.len()),
            indices,
            values: self.values[stored.start * row_size..stored.end * row_size].into(),
        })
    }

    /// The listed rows of an array of the same shape; the others are not stored. A row that was not
    /// stored before is not stored after, as with the operator [`retain`](crate::ops::retain),
    /// which takes ids in any order. O(k log n_stored + values kept) for k ids.
    ///
    /// # Errors
    ///
    /// [`FormatError::RowIdOutOfRange`], [`FormatError::RowIdUnsorted`] and
    /// [`FormatError::RowIdDuplicate`]; [`FormatError::OutOfMemory`].
    pub fn retain(&self, ids: &[u64]) -> Result<RowSparse<T>, FormatError> {
        check_row_ids(self.shape.n_rows(), ids)?;
        let row_size = self.shape.row_size();
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        let most = ids.len().min(self.n_stored());
        make_room(&mut indices, most, ROW_IDS, self.shape)?;
        make_room(&mut values, most.saturating_mul(row_size), ELEMENTS, self.shape)?;
        for &id in ids {
            if let Some(row) = self.row(id as usize) {
                indices.push(id);
                values.extend_from_slice(row);
            }
        }
        Ok(RowSparse { shape: self.shape, indices, values: values.into() })
    }
}

impl<T: Element> RowSparse<T> {
    /// The array of a run of rows, whose ids count from the first of them. A copy: the ids change.
    /// O(log n_stored + values copied).
    ///
    /// # Errors
    ///
    /// [`FormatError::RowRange`] if the array does not have them; [`FormatError::OutOfMemory`].
    ///
    /// ```
    /// use nnz::formats::RowSparse;
    /// let x = RowSparse::from_rows(6, [(1, [1.0f32, 2.0]), (4, [3.0, 4.0])])?;
    /// assert_eq!(x.slice_rows(3..6)?, RowSparse::from_rows(3, [(1, [3.0, 4.0])])?);
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    #[doc(alias = "rows")]
    pub fn slice_rows(&self, range: Range<usize>) -> Result<RowSparse<T>, FormatError> {
        self.view().slice_rows(range)
    }

    /// The rows of a list, as they are, of an array of the same shape; the others are not stored. A
    /// row that was not stored before is not stored after, as with the operator
    /// [`retain`](crate::ops::retain), which takes ids in any order. O(k log n_stored + values
    /// kept) for k ids.
    ///
    /// # Errors
    ///
    /// [`FormatError::RowIdOutOfRange`], [`FormatError::RowIdUnsorted`] and
    /// [`FormatError::RowIdDuplicate`]; [`FormatError::OutOfMemory`].
    ///
    /// ```
    /// use nnz::formats::RowSparse;
    /// let x = RowSparse::from_rows(5, [(0, [1.0f32, 2.0]), (2, [3.0, 4.0]), (3, [5.0, 6.0])])?;
    /// let kept = x.retain(&[0, 1])?;
    /// assert_eq!(kept, RowSparse::from_rows(5, [(0, [1.0, 2.0])])?);
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn retain(&self, ids: &[u64]) -> Result<RowSparse<T>, FormatError> {
        self.view().retain(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array() -> RowSparse {
        RowSparse::from_rows(7, [(0, [1.0, 2.0]), (2, [3.0, 4.0]), (6, [5.0, 6.0])]).unwrap()
    }

    #[test]
    fn runs_of_rows_are_those_of_the_dense_array() {
        let x = array();
        let dense = x.to_dense().unwrap();
        for start in 0..=7 {
            for end in start..=7 {
                let part = x.slice_rows(start..end).unwrap();
                assert_eq!(part.to_dense().unwrap().view(), dense.rows(start..end).unwrap());
                let all = RowSparseView::all([7, 2], dense.values()).unwrap();
                assert_eq!(all.slice_rows(start..end).unwrap().n_stored(), end - start);
            }
        }
        let error = x.slice_rows(5..8).unwrap_err();
        assert_eq!(error, FormatError::RowRange { start: 5, end: 8, n_rows: 7 });
        let csr = x.to_csr().unwrap();
        assert_eq!(csr.rows(2..7).unwrap().to_row_sparse(), x.slice_rows(2..7));
        assert!(csr.rows(7..8).is_err());
    }

    #[test]
    fn lists_of_rows_are_checked() {
        let x = array();
        assert_eq!(x.retain(&[]).unwrap(), RowSparse::zeros([7, 2]));
        let kept = x.retain(&[2, 3, 6]).unwrap();
        assert_eq!((kept.indices(), kept.values()), (&[2, 6][..], &[3.0, 4.0, 5.0, 6.0][..]));
        let ids = Dense::new([3], vec![6u32, 3, 2]).unwrap();
        assert_eq!(crate::ops::retain(&x, &ids).unwrap(), kept, "as the operator does");
        assert_eq!(kept.retain(&[2, 3, 6]).unwrap(), kept);
        assert_eq!(
            x.retain(&[1, 7]),
            Err(FormatError::RowIdOutOfRange { position: 1, row: 7, n_rows: 7 })
        );
        assert!(matches!(x.retain(&[2, 1]), Err(FormatError::RowIdUnsorted { .. })));
        assert!(matches!(x.retain(&[2, 2]), Err(FormatError::RowIdDuplicate { .. })));
        // Nothing is stored, so that nothing is kept, however large a row is.
        let wide = RowSparse::<f32>::zeros([2, usize::MAX, 2]);
        assert_eq!(wide.retain(&[1]).unwrap(), wide);
    }
}
