//! Queries of an array: its shape, the number of stored elements, an element, all stored elements.

use super::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView, Shape};
use sparse_core::element::{Element, Stored};

impl<'a, T: Stored> CsrView<'a, T> {
    /// The extents.
    #[inline]
    pub fn shape(&self) -> Shape {
        [self.n_rows(), self.n_cols].into()
    }

    /// The share of elements that are stored, in [0, 1]; 0 for a matrix without elements.
    pub fn density(&self) -> f64 {
        share(self.nnz(), self.n_rows() as f64 * self.n_cols as f64)
    }

    /// The stored entries, row by row: `(row, column, value)`.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, T)> + use<'a, T> {
        let rows = self.iter_rows().enumerate();
        rows.flat_map(|(row, entries)| entries.map(move |(column, value)| (row, column, value)))
    }
}

impl<T: Element> CsrView<'_, T> {
    /// The element at a row and a column, 0 where none is stored; `None` outside of the matrix.
    /// O(log of the row's entries).
    pub fn get(&self, row: usize, column: usize) -> Option<T> {
        let (columns, values) = self.row(row)?;
        if column >= self.n_cols {
            return None;
        }
        Some(
            columns
                .find(column)
                .and_then(|position| values.get(position))
                .copied()
                .unwrap_or_default(),
        )
    }
}

impl<T: Stored> Csr<T> {
    /// The extents.
    #[inline]
    pub fn shape(&self) -> Shape {
        self.view().shape()
    }

    /// The share of elements that are stored, in [0, 1]; 0 for a matrix without elements.
    ///
    /// ```
    /// use nnz::formats::Csr;
    /// let x = Csr::from_coo(2, 4, [(0, 1, 2.0f32), (1, 3, 1.0)])?;
    /// assert_eq!((x.nnz(), x.density()), (2, 0.25));
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn density(&self) -> f64 {
        self.view().density()
    }

    /// The stored entries, row by row: `(row, column, value)`.
    ///
    /// ```
    /// use nnz::formats::Csr;
    /// let x = Csr::from_coo(2, 4, [(1, 3, 1.0f32), (0, 1, 2.0)])?;
    /// assert_eq!(x.iter().collect::<Vec<_>>(), [(0, 1, 2.0), (1, 3, 1.0)]);
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, T)> {
        self.view().iter()
    }
}

impl<T: Element> Csr<T> {
    /// The element at a row and a column, 0 where none is stored; `None` outside of the matrix.
    /// O(log of the row's entries).
    pub fn get(&self, row: usize, column: usize) -> Option<T> {
        self.view().get(row, column)
    }

    /// Leaves out the entries whose value is 0. O(n_rows + nnz), in the matrix's own memory.
    pub fn eliminate_zeros(&mut self) {
        let source = std::mem::take(self);
        let is_zero = |value: &T| *value == T::default();
        if !source.values.iter().any(is_zero) {
            *self = source;
            return;
        }
        let n_cols = source.n_cols;
        super::with_id_type!(n_cols, |I| self.rebuild::<I, _>(n_cols, |parts| {
            for row in source.iter_rows() {
                for (column, value) in row.filter(|(_, value)| !is_zero(value)) {
                    parts.push(super::ColumnId::from_index(column), value);
                }
                parts.finish_row();
            }
        }));
    }
}

impl<'a, T: Element> RowSparseView<'a, T> {
    /// The stored rows as a dense array: one row for each of [`indices`](RowSparseView::indices).
    #[inline]
    pub fn data(&self) -> DenseView<'a, T> {
        DenseView { shape: self.shape.with_n_rows(self.n_stored()), values: self.values }
    }

    /// The number of stored elements, those of a stored row that are 0 included.
    #[inline]
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// The share of rows that are stored, in [0, 1]; 0 for an array without rows.
    pub fn density(&self) -> f64 {
        share(self.n_stored(), self.shape.n_rows() as f64)
    }

    /// The element at an index, one number for each extent, 0 where its row is not stored; `None`
    /// outside of the array or for another rank. O(log n_stored).
    pub fn get(&self, index: &[usize]) -> Option<T> {
        let (&row, within) = index.split_first()?;
        let inside = |(&i, &extent): (&usize, &usize)| i < extent;
        if index.len() != self.shape.rank() || !index.iter().zip(self.shape.iter()).all(inside) {
            return None;
        }
        // Below the size of a row, which is stored if this counts.
        let offset = within
            .iter()
            .zip(&self.shape[1..])
            .fold(0usize, |offset, (i, extent)| offset.wrapping_mul(*extent).wrapping_add(*i));
        Some(self.row(row).and_then(|row| row.get(offset)).copied().unwrap_or_default())
    }
}

impl<T: Element> RowSparse<T> {
    /// The stored rows as a dense array: one row for each of [`indices`](RowSparse::indices).
    ///
    /// ```
    /// use nnz::formats::RowSparse;
    /// let x = RowSparse::from_rows(6, [(1, [1.0f32, 2.0]), (4, [3.0, 4.0])])?;
    /// assert_eq!(x.data().shape()[..], [2, 2]);
    /// assert_eq!(x.data().row(1), Some(&[3.0, 4.0][..]));
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    #[inline]
    pub fn data(&self) -> DenseView<'_, T> {
        self.view().data()
    }

    /// The number of stored elements, those of a stored row that are 0 included.
    #[inline]
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// The share of rows that are stored, in [0, 1]; 0 for an array without rows.
    pub fn density(&self) -> f64 {
        self.view().density()
    }

    /// The element at an index, one number for each extent, 0 where its row is not stored; `None`
    /// outside of the array or for another rank. O(log n_stored).
    ///
    /// ```
    /// use nnz::formats::RowSparse;
    /// let x = RowSparse::from_rows(6, [(1, [1.0f32, 2.0]), (4, [3.0, 4.0])])?;
    /// assert_eq!((x.get(&[4, 1]), x.get(&[3, 1]), x.get(&[6, 1])), (Some(4.0), Some(0.0), None));
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn get(&self, index: &[usize]) -> Option<T> {
        self.view().get(index)
    }

    /// The stored rows in order: id and elements.
    pub fn iter_rows(&self) -> impl ExactSizeIterator<Item = (usize, &[T])> {
        self.view().iter_rows()
    }

    /// Leaves out the stored rows that are 0 everywhere. O(stored values), in the array's own
    /// memory.
    pub fn eliminate_zeros(&mut self) {
        let row_size = self.shape.row_size();
        let mut kept = 0;
        for position in 0..self.indices.len() {
            let row = position * row_size..(position + 1) * row_size;
            if self.values[row.clone()].iter().all(|value| *value == T::default()) {
                continue;
            }
            self.indices[kept] = self.indices[position];
            self.values.copy_within(row, kept * row_size);
            kept += 1;
        }
        self.indices.truncate(kept);
        self.values.truncate(kept * row_size);
    }
}

impl<'a, T: Element> DenseView<'a, T> {
    /// The number of elements that are not 0. O(size).
    pub fn nnz(&self) -> usize {
        self.values.iter().filter(|value| **value != T::default()).count()
    }

    /// The share of elements that are not 0, in [0, 1]; 0 for an array without elements. O(size).
    pub fn density(&self) -> f64 {
        share(self.nnz(), self.values.len() as f64)
    }

    /// The rows in order, each all of its elements.
    pub fn iter_rows(&self) -> impl ExactSizeIterator<Item = &'a [T]> + use<'a, T> {
        let view = *self;
        (0..view.shape.n_rows()).map(move |i| view.row(i).unwrap_or_default())
    }
}

impl<T: Element> Dense<T> {
    /// The number of elements that are not 0. O(size).
    pub fn nnz(&self) -> usize {
        self.view().nnz()
    }

    /// The share of elements that are not 0, in [0, 1]; 0 for an array without elements. O(size).
    pub fn density(&self) -> f64 {
        self.view().density()
    }

    /// The rows in order, each all of its elements.
    pub fn iter_rows(&self) -> impl ExactSizeIterator<Item = &[T]> {
        self.view().iter_rows()
    }
}

fn share(stored: usize, of: f64) -> f64 {
    if of == 0.0 { 0.0 } else { stored as f64 / of }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_those_of_the_dense_array() {
        let dense = Dense::new([3, 2, 2], vec![0u32, 0, 0, 0, 1, 2, 0, 4, 0, 0, 0, 0]).unwrap();
        let dense: Dense<f64> = dense.cast();
        let rows = dense.to_row_sparse().unwrap();
        assert_eq!((rows.nnz(), rows.density(), dense.nnz()), (4, 1.0 / 3.0, 3));
        for i in 0..4 {
            for j in 0..3 {
                for k in 0..3 {
                    assert_eq!(rows.get(&[i, j, k]), dense.get(&[i, j, k]));
                }
            }
        }
        assert_eq!((rows.get(&[1, 0]), rows.get(&[])), (None, None));
        let flat = dense.reshape([3, 4]).unwrap();
        let csr = flat.to_csr().unwrap();
        for i in 0..4 {
            for j in 0..5 {
                assert_eq!(csr.get(i, j), flat.get(&[i, j]));
            }
        }
        assert_eq!((csr.shape(), csr.density()), (*flat.shape(), flat.density()));
        assert!(flat.iter_rows().eq([&[0.0; 4][..], &[1.0, 2.0, 0.0, 4.0], &[0.0; 4]]));
    }

    #[test]
    fn arrays_without_elements_are_not_dense() {
        assert_eq!(Csr::<f32>::zeros(0, 3).density(), 0.0);
        assert_eq!(RowSparse::<f32>::zeros([0, 3]).density(), 0.0);
        assert_eq!(Dense::<f32>::zeros([3, 0]).density(), 0.0);
        assert_eq!(RowSparse::<f32>::zeros([3, usize::MAX, 4]).get(&[1, 7, 3]), Some(0.0));
        assert_eq!(Csr::<f32>::zeros(3, usize::MAX).get(1, usize::MAX - 1), Some(0.0));
    }

    #[test]
    fn stored_zeros_are_eliminated() {
        let mut x =
            Csr::new(4, vec![0, 2, 3, 4], vec![0u32, 3, 1, 2], vec![0.0f32, 1.0, -0.0, f32::NAN])
                .unwrap();
        x.eliminate_zeros();
        assert_eq!(
            (x.indptr(), x.columns().iter().collect::<Vec<_>>()),
            (&[0, 1, 1, 2][..], vec![3, 2])
        );
        let same = x.values().as_ptr();
        x.eliminate_zeros();
        assert_eq!((x.nnz(), x.values().as_ptr()), (2, same));
        let mut x = RowSparse::from_rows(9, [(1, [0.0f32, 0.0]), (3, [0.0, 5.0]), (4, [0.0, 0.0])])
            .unwrap();
        x.eliminate_zeros();
        assert_eq!(x, RowSparse::from_rows(9, [(3, [0.0, 5.0])]).unwrap());
    }
}
