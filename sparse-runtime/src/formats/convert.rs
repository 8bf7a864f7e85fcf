//! Conversions between storage types, and between `f32` and `f64`.
//!
//! Every conversion is an `assign_…` on the destination, which reuses its allocations; the `to_…` methods are those
//! with a new destination. What is stored is `value != 0`: NaN is stored, and -0.0 is a zero like any other. Where
//! source and destination are both csr or both row_sparse, the pattern is kept, stored zeros included. The three
//! arrays have the same methods with the same signatures, so that code that does not know the storage type can call
//! them.

use super::dense::too_large;
use super::with_id_type;
use super::{
    ColumnId, Csr, CsrView, Dense, DenseView, FormatError, RowIdsView, RowSparse, RowSparseView,
    Shape,
};
use crate::with_column_ids;
use sparse_core::element::{Element, Float};
use sparse_core::storage::Storage;

impl<T: Element> Dense<T> {
    /// Becomes a copy.
    pub fn assign_dense(&mut self, source: DenseView<'_, T>) {
        self.shape = source.shape;
        self.values.clear();
        self.values.extend_from_slice(source.values);
    }

    /// Becomes the dense form of a csr matrix, in O(n_rows · n_cols).
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLarge`].
    pub fn assign_csr(&mut self, source: CsrView<'_, T>) -> Result<(), FormatError> {
        let shape = Shape::from([source.n_rows(), source.n_cols]);
        self.try_reset(shape)?;
        if source.n_cols == 0 {
            return Ok(());
        }
        let rows = self.values.chunks_exact_mut(source.n_cols);
        with_column_ids!(source.columns, |ids| {
            for ((row, &start), &end) in rows.zip(source.starts).zip(source.ends) {
                let entries = start as usize..end as usize;
                for (id, &value) in ids[entries.clone()].iter().zip(&source.values[entries]) {
                    row[id.at()] = value;
                }
            }
        });
        Ok(())
    }

    /// Becomes the dense form of a row_sparse array, in O(size of the whole array).
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLarge`].
    pub fn assign_row_sparse(&mut self, source: RowSparseView<'_, T>) -> Result<(), FormatError> {
        let ids = match source.indices {
            RowIdsView::All => {
                self.assign_dense(DenseView {
                    shape: source.shape,
                    values: source.values,
                });
                return Ok(());
            }
            RowIdsView::Listed(ids) => ids,
        };
        self.try_reset(source.shape)?;
        let row_size = source.shape.row_size();
        if row_size > 0 {
            for (&id, row) in ids.iter().zip(source.values.chunks_exact(row_size)) {
                let start = id as usize * row_size;
                self.values[start..start + row_size].copy_from_slice(row);
            }
        }
        Ok(())
    }

    fn try_reset(&mut self, shape: Shape) -> Result<(), FormatError> {
        if shape.addressable_size::<T>().is_none() {
            return Err(too_large::<T>(shape));
        }
        self.reset(shape);
        Ok(())
    }
}

impl<T: Element> Csr<T> {
    /// Becomes the csr form of a dense matrix: what is not zero is stored. O(n_rows · n_cols).
    ///
    /// # Errors
    ///
    /// [`FormatError::Rank`] unless the rank is 2.
    pub fn assign_dense(&mut self, source: DenseView<'_, T>) -> Result<(), FormatError> {
        let (n_rows, n_cols) = matrix_extents("a conversion to csr", &source.shape)?;
        with_id_type!(n_cols, |I| self.rebuild::<I, _>(n_cols, |parts| {
            for i in 0..n_rows {
                let row = &source.values[i * n_cols..(i + 1) * n_cols];
                for (column, &value) in row.iter().enumerate() {
                    if value != T::default() {
                        parts.push(I::from_index(column), value);
                    }
                }
                parts.finish_row();
            }
        }));
        Ok(())
    }

    /// Becomes a copy of the rows of a view, and of those only. O(n_rows + nnz).
    pub fn assign_csr(&mut self, source: CsrView<'_, T>) {
        let n_cols = source.n_cols;
        with_id_type!(n_cols, |I| self.rebuild::<I, _>(n_cols, |parts| {
            parts.indptr.reserve(source.n_rows());
            let nnz = source.nnz();
            parts.columns.reserve(nnz);
            parts.values.reserve(nnz);
            with_column_ids!(source.columns, |ids| {
                for (&start, &end) in source.starts.iter().zip(source.ends) {
                    let row = start as usize..end as usize;
                    let columns = ids[row.clone()].iter().map(|id| I::from_index(id.at()));
                    parts.columns.extend(columns);
                    parts.values.extend_from_slice(&source.values[row]);
                    parts.finish_row();
                }
            });
        }));
    }

    /// Becomes the csr form of a row_sparse matrix: what is not zero is stored. O(n_rows + stored values).
    ///
    /// # Errors
    ///
    /// [`FormatError::Rank`] unless the rank is 2.
    pub fn assign_row_sparse(&mut self, source: RowSparseView<'_, T>) -> Result<(), FormatError> {
        let (n_rows, n_cols) = matrix_extents("a conversion to csr", &source.shape)?;
        with_id_type!(n_cols, |I| self.rebuild::<I, _>(n_cols, |parts| {
            for (id, row) in source.iter_rows() {
                while parts.indptr.len() <= id {
                    parts.finish_row();
                }
                for (column, &value) in row.iter().enumerate() {
                    if value != T::default() {
                        parts.push(I::from_index(column), value);
                    }
                }
            }
            while parts.indptr.len() <= n_rows {
                parts.finish_row();
            }
        }));
        Ok(())
    }
}

impl<T: Element> RowSparse<T> {
    /// Becomes the row_sparse form of a dense array: rows with an element that is not zero are stored. O(size).
    pub fn assign_dense(&mut self, source: DenseView<'_, T>) {
        let row_size = source.shape.row_size();
        self.rebuild(source.shape, |ids, values| {
            if row_size == 0 {
                return;
            }
            for (id, row) in source.values.chunks_exact(row_size).enumerate() {
                if row.iter().any(|&value| value != T::default()) {
                    ids.push(id as u64);
                    values.extend_from_slice(row);
                }
            }
        });
    }

    /// Becomes the row_sparse form of a csr matrix: rows with a stored entry are stored. O(n_rows + rows stored ·
    /// n_cols).
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLarge`] if the stored rows cannot be addressed.
    pub fn assign_csr(&mut self, source: CsrView<'_, T>) -> Result<(), FormatError> {
        let n_cols = source.n_cols;
        let stored = (source.starts.iter().zip(source.ends))
            .filter(|(start, end)| start < end)
            .count();
        let table = Shape::from([stored, n_cols]);
        if table.addressable_size::<T>().is_none() {
            return Err(too_large::<T>(table));
        }
        self.rebuild([source.n_rows(), n_cols], |indices, values| {
            indices.reserve(stored);
            values.resize(stored * n_cols, T::default());
            with_column_ids!(source.columns, |ids| {
                for (id, (&start, &end)) in source.starts.iter().zip(source.ends).enumerate() {
                    if start == end {
                        continue;
                    }
                    let row = &mut values[indices.len() * n_cols..][..n_cols];
                    let entries = start as usize..end as usize;
                    for (column, &value) in ids[entries.clone()].iter().zip(&source.values[entries])
                    {
                        row[column.at()] = value;
                    }
                    indices.push(id as u64);
                }
            });
        });
        Ok(())
    }

    /// Becomes a copy; a table of all rows becomes an array that lists them all.
    pub fn assign_row_sparse(&mut self, source: RowSparseView<'_, T>) {
        self.rebuild(source.shape, |ids, values| {
            match source.indices {
                RowIdsView::All => ids.extend(0..source.shape.n_rows() as u64),
                RowIdsView::Listed(listed) => ids.extend_from_slice(listed),
            }
            values.extend_from_slice(source.values);
        });
    }
}

fn matrix_extents(operation: &'static str, shape: &Shape) -> Result<(usize, usize), FormatError> {
    shape.matrix().ok_or(FormatError::Rank {
        operation,
        expected: 2,
        shape: *shape,
    })
}

/// The same conversions on all three arrays, each by the `assign_…` of its destination.
macro_rules! conversions {
    ($($array:ident $view:ident: $source:ident => dense $dense:tt csr $csr:tt row_sparse $row_sparse:tt;)*) => {
        $(impl<T: Element> $view<'_, T> {
            /// As a dense array.
            ///
            /// # Errors
            ///
            /// [`FormatError::TooLarge`] if it cannot be addressed.
            pub fn to_dense(&self) -> Result<Dense<T>, FormatError> {
                let mut array = Dense::default();
                conversions!(@call $dense array.$source(*self));
                Ok(array)
            }

            /// As a csr matrix.
            ///
            /// # Errors
            ///
            /// [`FormatError::Rank`] unless the rank is 2.
            pub fn to_csr(&self) -> Result<Csr<T>, FormatError> {
                let mut array = Csr::default();
                conversions!(@call $csr array.$source(*self));
                Ok(array)
            }

            /// As a row_sparse array.
            ///
            /// # Errors
            ///
            /// [`FormatError::TooLarge`] if the stored rows cannot be addressed.
            pub fn to_row_sparse(&self) -> Result<RowSparse<T>, FormatError> {
                let mut array = RowSparse::default();
                conversions!(@call $row_sparse array.$source(*self));
                Ok(array)
            }
        }

        impl<T: Element> $array<T> {
            /// The storage type.
            #[inline]
            pub fn stype(&self) -> Storage {
                Storage::$array
            }

            /// As a dense array.
            ///
            /// # Errors
            ///
            /// [`FormatError::TooLarge`] if it cannot be addressed.
            pub fn to_dense(&self) -> Result<Dense<T>, FormatError> {
                self.view().to_dense()
            }

            /// As a csr matrix.
            ///
            /// # Errors
            ///
            /// [`FormatError::Rank`] unless the rank is 2.
            pub fn to_csr(&self) -> Result<Csr<T>, FormatError> {
                self.view().to_csr()
            }

            /// As a row_sparse array.
            ///
            /// # Errors
            ///
            /// [`FormatError::TooLarge`] if the stored rows cannot be addressed.
            pub fn to_row_sparse(&self) -> Result<RowSparse<T>, FormatError> {
                self.view().to_row_sparse()
            }
        })*
    };
    (@call fallible $call:expr) => { $call? };
    (@call infallible $call:expr) => { $call };
}

conversions! {
    Dense DenseView: assign_dense => dense infallible csr fallible row_sparse infallible;
    Csr CsrView: assign_csr => dense fallible csr infallible row_sparse fallible;
    RowSparse RowSparseView: assign_row_sparse => dense fallible csr fallible row_sparse infallible;
}

fn cast<T: Float, U: Float>(values: &[T]) -> Vec<U> {
    values.iter().map(|value| U::of(value.as_f64())).collect()
}

impl<T: Float> Dense<T> {
    /// The same array with another type of float: `f32` to `f64` is exact, `f64` to `f32` rounds to nearest.
    pub fn cast_elements<U: Float>(&self) -> Dense<U> {
        Dense {
            shape: self.shape,
            values: cast(&self.values),
        }
    }
}

impl<T: Float> Csr<T> {
    /// The same matrix with another type of float: `f32` to `f64` is exact, `f64` to `f32` rounds to nearest. The
    /// pattern stays, also where a value rounds to zero.
    pub fn cast_elements<U: Float>(&self) -> Csr<U> {
        Csr {
            n_cols: self.n_cols,
            indptr: self.indptr.clone(),
            columns: self.columns.clone(),
            values: cast(&self.values),
        }
    }
}

impl<T: Float> RowSparse<T> {
    /// The same array with another type of float: `f32` to `f64` is exact, `f64` to `f32` rounds to nearest. Which
    /// rows are stored stays.
    pub fn cast_elements<U: Float>(&self) -> RowSparse<U> {
        RowSparse {
            shape: self.shape,
            indices: self.indices.clone(),
            values: cast(&self.values),
        }
    }
}
