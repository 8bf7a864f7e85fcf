//! Conversions between storage types.
//!
//! Every conversion is an `assign_…` on the destination, which reuses its allocations; the `to_…`
//! methods are those with a new destination. An element is stored if `value != 0`: NaN is stored,
//! and -0.0 is a zero like any other. Where source and destination are both csr or both row_sparse,
//! the pattern is kept, stored zeros included. The three arrays have the same methods with the same
//! signatures, for code that does not know the storage type.

mod not_zero;
#[cfg(test)]
mod tests;

use self::not_zero::NotZero;
use super::dense::too_large;
use super::memory::{ELEMENTS, ROW_IDS, make_room};
use super::with_id_type;
use super::{
    ColumnId, Csr, CsrBuffers, CsrView, Dense, DenseView, FormatError, RowIdsView, RowSparse,
    RowSparseView, Shape,
};
use crate::with_column_ids;
use nnz_device::simd::{same_type, widest};
use sparse_core::element::{Element, Stored};
use sparse_core::storage::Storage;
use std::ops::Range;

impl<T: Element> Dense<T> {
    /// Becomes a copy.
    pub fn assign_dense(&mut self, source: DenseView<'_, T>) {
        self.shape = source.shape;
        self.values.assign(source.values);
    }

    /// Becomes the dense form of a csr matrix, in O(n_rows · n_cols).
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLarge`], [`FormatError::OutOfMemory`].
    pub fn assign_csr(&mut self, source: CsrView<'_, T>) -> Result<(), FormatError> {
        self.assign_csr_by(source, |value| value)
    }

    /// [`assign_csr`](Dense::assign_csr) of a matrix that stores something else.
    pub(crate) fn assign_csr_by<V: Stored>(
        &mut self,
        source: CsrView<'_, V>,
        element: impl Fn(V) -> T,
    ) -> Result<(), FormatError> {
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
                    row[id.at()] = element(value);
                }
            }
        });
        Ok(())
    }

    /// Becomes the dense form of a row_sparse array, in O(size of the whole array).
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLarge`], [`FormatError::OutOfMemory`].
    pub fn assign_row_sparse(&mut self, source: RowSparseView<'_, T>) -> Result<(), FormatError> {
        let ids = match source.indices {
            RowIdsView::All => {
                self.assign_dense(DenseView { shape: source.shape, values: source.values });
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
}

impl<T: Stored> Csr<T> {
    /// Becomes a copy of the rows of a view, and of those only. O(n_rows + nnz).
    pub fn assign_csr(&mut self, source: CsrView<'_, T>) {
        self.assign_csr_by(source, |value| value);
    }

    /// [`assign_csr`](Csr::assign_csr) of a matrix that stores something else.
    pub(crate) fn assign_csr_by<V: Stored>(
        &mut self,
        source: CsrView<'_, V>,
        element: impl Fn(V) -> T,
    ) {
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
                    parts.values.extend(source.values[row].iter().map(|&value| element(value)));
                    parts.finish_row();
                }
            });
        }));
    }
}

impl<T: Element> Csr<T> {
    /// Becomes a matrix that stores what the rows of a view store, with whatever values were left
    /// in its buffer. O(n_rows + nnz).
    pub(crate) fn take_pattern(&mut self, source: CsrView<'_, T>) {
        let (n_cols, nnz) = (source.n_cols, source.nnz());
        let mut values = std::mem::take(&mut self.values);
        values.resize(nnz, T::default());
        with_id_type!(n_cols, |I| self.rebuild::<I, _>(n_cols, |parts| {
            let CsrBuffers { indptr, columns, .. } = parts;
            indptr.reserve(source.n_rows());
            columns.reserve(nnz);
            let mut written = 0;
            for (start, end) in source.starts.iter().zip(source.ends) {
                written += end - start;
                indptr.push(written);
            }
            let mut copy = |entries: Range<usize>| {
                with_column_ids!(source.columns, |ids| match same_type(&ids[entries.clone()]) {
                    Some(ids) => columns.extend_from_slice(ids),
                    None => columns.extend(ids[entries].iter().map(|id| I::from_index(id.at()))),
                });
            };
            if source.is_contiguous() {
                copy(source.entries())
            } else {
                (source.starts.iter().zip(source.ends))
                    .for_each(|(&start, &end)| copy(start as usize..end as usize))
            }
            parts.values = values;
        }));
    }

    /// Becomes the csr form of a dense matrix: what is not zero is stored. O(n_rows · n_cols).
    ///
    /// # Errors
    ///
    /// [`FormatError::Rank`] unless the rank is 2; [`FormatError::OutOfMemory`] if there are too
    /// many rows.
    pub fn assign_dense(&mut self, source: DenseView<'_, T>) -> Result<(), FormatError> {
        let (n_rows, n_cols) = matrix_extents("a conversion to csr", &source.shape)?;
        self.make_room_for_rows(source.shape)?;
        with_id_type!(n_cols, |I| self.rebuild::<I, _>(n_cols, |parts| {
            widest(NotZero { parts, values: source.values, n_rows, n_cols });
        }));
        Ok(())
    }

    /// Becomes the csr form of a row_sparse matrix: what is not zero is stored. O(n_rows + stored
    /// values).
    ///
    /// # Errors
    ///
    /// [`FormatError::Rank`] unless the rank is 2; [`FormatError::OutOfMemory`] if there are too
    /// many rows.
    pub fn assign_row_sparse(&mut self, source: RowSparseView<'_, T>) -> Result<(), FormatError> {
        let (n_rows, n_cols) = matrix_extents("a conversion to csr", &source.shape)?;
        self.make_room_for_rows(source.shape)?;
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
    /// Becomes the row_sparse form of a dense array: rows with an element that is not zero are
    /// stored. O(size).
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

    /// Becomes the row_sparse form of a csr matrix: rows with a stored entry are stored. O(n_rows +
    /// rows stored · n_cols).
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLarge`] if the stored rows cannot be addressed,
    /// [`FormatError::OutOfMemory`].
    pub fn assign_csr(&mut self, source: CsrView<'_, T>) -> Result<(), FormatError> {
        let n_cols = source.n_cols;
        let stored =
            (source.starts.iter().zip(source.ends)).filter(|(start, end)| start < end).count();
        let table = Shape::from([stored, n_cols]);
        if table.addressable_size::<T>().is_none() {
            return Err(too_large::<T>(table));
        }
        self.values.make_room(stored * n_cols, ELEMENTS, source.shape())?;
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
    ///
    /// # Panics
    ///
    /// If there is no memory for a list of all rows: rows without elements may be more than that.
    #[track_caller]
    pub fn assign_row_sparse(&mut self, source: RowSparseView<'_, T>) {
        if let Err(error) = self.try_assign_row_sparse(source) {
            panic!("{error}");
        }
    }

    /// Becomes an array that stores the rows that a view stores, with whatever values were left in
    /// its buffer. O(elements stored).
    ///
    /// # Panics
    ///
    /// As [`assign_row_sparse`](Self::assign_row_sparse).
    #[track_caller]
    pub(crate) fn take_pattern(&mut self, source: RowSparseView<'_, T>) {
        if let Err(error) = make_room(&mut self.indices, source.n_stored(), ROW_IDS, source.shape) {
            panic!("{error}");
        }
        let mut kept = std::mem::take(&mut self.values);
        kept.resize_for_overwrite(source.values.len());
        self.rebuild_lines(source.shape, |ids, values| {
            list_rows(ids, source);
            *values = kept;
        });
    }

    /// [`assign_row_sparse`](Self::assign_row_sparse), with an error where that panics; the array
    /// is then as before.
    pub(super) fn try_assign_row_sparse(
        &mut self,
        source: RowSparseView<'_, T>,
    ) -> Result<(), FormatError> {
        make_room(&mut self.indices, source.n_stored(), ROW_IDS, source.shape)?;
        self.rebuild(source.shape, |ids, values| {
            list_rows(ids, source);
            values.extend_from_slice(source.values);
        });
        Ok(())
    }
}

/// The ids of the rows that a view stores.
fn list_rows<T: Element>(ids: &mut Vec<u64>, source: RowSparseView<'_, T>) {
    match source.indices {
        RowIdsView::All => ids.extend(0..source.shape.n_rows() as u64),
        RowIdsView::Listed(listed) => ids.extend_from_slice(listed),
    }
}

fn matrix_extents(operation: &'static str, shape: &Shape) -> Result<(usize, usize), FormatError> {
    shape.matrix().ok_or(FormatError::Rank { operation, expected: 2, shape: *shape })
}

/// The same conversions on all three arrays, to dense, csr and row_sparse, each by the `assign_…`
/// of its destination.
macro_rules! conversions {
    ($($array:ident $view:ident: $dense:ident $d:ident, $csr:ident $c:ident, $row_sparse:ident $r:ident;)*) => {
        $(impl<T: Element> $view<'_, T> {
            /// As a dense array.
            ///
            /// # Errors
            ///
            /// [`FormatError::TooLarge`] if it cannot be addressed, [`FormatError::OutOfMemory`].
            pub fn to_dense(&self) -> Result<Dense<T>, FormatError> {
                let mut array = Dense::default();
                conversions!(@call $d array.$dense(*self));
                Ok(array)
            }

            /// As a csr matrix.
            ///
            /// # Errors
            ///
            /// [`FormatError::Rank`] unless the rank is 2, [`FormatError::OutOfMemory`].
            pub fn to_csr(&self) -> Result<Csr<T>, FormatError> {
                let mut array = Csr::default();
                conversions!(@call $c array.$csr(*self));
                Ok(array)
            }

            /// As a row_sparse array.
            ///
            /// # Errors
            ///
            /// [`FormatError::TooLarge`] if the stored rows cannot be addressed,
            /// [`FormatError::OutOfMemory`].
            pub fn to_row_sparse(&self) -> Result<RowSparse<T>, FormatError> {
                let mut array = RowSparse::default();
                conversions!(@call $r array.$row_sparse(*self));
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
            /// [`FormatError::TooLarge`] if it cannot be addressed, [`FormatError::OutOfMemory`].
            pub fn to_dense(&self) -> Result<Dense<T>, FormatError> {
                self.view().to_dense()
            }

            /// As a csr matrix.
            ///
            /// # Errors
            ///
            /// [`FormatError::Rank`] unless the rank is 2, [`FormatError::OutOfMemory`].
            pub fn to_csr(&self) -> Result<Csr<T>, FormatError> {
                self.view().to_csr()
            }

            /// As a row_sparse array.
            ///
            /// # Errors
            ///
            /// [`FormatError::TooLarge`] if the stored rows cannot be addressed,
            /// [`FormatError::OutOfMemory`].
            pub fn to_row_sparse(&self) -> Result<RowSparse<T>, FormatError> {
                self.view().to_row_sparse()
            }
        })*
    };
    (@call fallible $call:expr) => { $call? };
    (@call infallible $call:expr) => { $call };
}

conversions! {
    Dense DenseView:
        assign_dense infallible, assign_dense fallible, assign_dense infallible;
    Csr CsrView:
        assign_csr fallible, assign_csr infallible, assign_csr fallible;
    RowSparse RowSparseView:
        assign_row_sparse fallible, assign_row_sparse fallible, try_assign_row_sparse fallible;
}
