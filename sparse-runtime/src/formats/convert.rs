//! Conversions between storage types.
//!
//! Every conversion is an `assign_…` on the destination, which reuses its allocations; the `to_…` methods are those
//! with a new destination. What is stored is `value != 0`: NaN is stored, and -0.0 is a zero like any other. Where
//! source and destination are both csr or both row_sparse, the pattern is kept, stored zeros included. The three
//! arrays have the same methods with the same signatures, so that code that does not know the storage type can call
//! them.

use super::dense::too_large;
use super::memory::{ELEMENTS, ROW_IDS, make_room};
use super::with_id_type;
use super::{
    ColumnId, Csr, CsrBuffers, CsrView, Dense, DenseView, FormatError, RowIdsView, RowSparse,
    RowSparseView, Shape,
};
use crate::lanes::{Lanes, Loop, widest};
use crate::with_column_ids;
use sparse_core::element::Element;
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
    /// [`FormatError::TooLarge`], [`FormatError::OutOfMemory`].
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

impl<T: Element> Csr<T> {
    /// Becomes the csr form of a dense matrix: what is not zero is stored. O(n_rows · n_cols).
    ///
    /// # Errors
    ///
    /// [`FormatError::Rank`] unless the rank is 2; [`FormatError::OutOfMemory`] if there are too many rows.
    pub fn assign_dense(&mut self, source: DenseView<'_, T>) -> Result<(), FormatError> {
        let (n_rows, n_cols) = matrix_extents("a conversion to csr", &source.shape)?;
        self.make_room_for_rows(source.shape)?;
        with_id_type!(n_cols, |I| self.rebuild::<I, _>(n_cols, |parts| {
            widest(NotZero { parts, values: source.values, n_rows, n_cols });
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
    /// [`FormatError::Rank`] unless the rank is 2; [`FormatError::OutOfMemory`] if there are too many rows.
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
    /// [`FormatError::TooLarge`] if the stored rows cannot be addressed, [`FormatError::OutOfMemory`].
    pub fn assign_csr(&mut self, source: CsrView<'_, T>) -> Result<(), FormatError> {
        let n_cols = source.n_cols;
        let stored =
            (source.starts.iter().zip(source.ends)).filter(|(start, end)| start < end).count();
        let table = Shape::from([stored, n_cols]);
        if table.addressable_size::<T>().is_none() {
            return Err(too_large::<T>(table));
        }
        make_room(&mut self.values, stored * n_cols, ELEMENTS, source.shape())?;
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

    /// [`assign_row_sparse`](Self::assign_row_sparse), with an error where that panics; the array is then as before.
    pub(super) fn try_assign_row_sparse(
        &mut self,
        source: RowSparseView<'_, T>,
    ) -> Result<(), FormatError> {
        make_room(&mut self.indices, source.n_stored(), ROW_IDS, source.shape)?;
        self.rebuild(source.shape, |ids, values| {
            match source.indices {
                RowIdsView::All => ids.extend(0..source.shape.n_rows() as u64),
                RowIdsView::Listed(listed) => ids.extend_from_slice(listed),
            }
            values.extend_from_slice(source.values);
        });
        Ok(())
    }
}

/// Appends what is not zero of a dense matrix.
struct NotZero<'a, I, T> {
    parts: &'a mut CsrBuffers<I, T>,
    values: &'a [T],
    n_rows: usize,
    n_cols: usize,
}

/// Of no type of elements: the compiler makes the comparisons of a block into vectors by itself.
impl<I: ColumnId, T: Element> Loop<f32> for NotZero<'_, I, T> {
    #[inline(always)]
    unsafe fn run<L: Lanes<f32>>(self) {
        let NotZero { parts, values, n_rows, n_cols } = self;
        for row in 0..n_rows {
            let row = &values[row * n_cols..(row + 1) * n_cols];
            let (blocks, rest) = row.as_chunks::<BLOCK>();
            for (block, elements) in blocks.iter().enumerate() {
                let mut any = false;
                for &element in elements {
                    any |= element != T::default();
                }
                if any {
                    append_block(parts, block * BLOCK, elements);
                }
            }
            for (column, &value) in rest.iter().enumerate() {
                if value != T::default() {
                    parts.push(I::from_index(blocks.len() * BLOCK + column), value);
                }
            }
            parts.finish_row();
        }
    }
}

/// As many elements as a word has bits.
const BLOCK: usize = 64;

/// Appends what is not zero of a block, whose first column is given: a word says where, and its ones are counted off.
#[inline(always)]
fn append_block<I: ColumnId, T: Element>(
    parts: &mut CsrBuffers<I, T>,
    first: usize,
    elements: &[T; BLOCK],
) {
    let mut places = 0u64;
    for (at, &element) in elements.iter().enumerate() {
        places |= u64::from(element != T::default()) << at;
    }
    parts.columns.reserve(BLOCK);
    parts.values.reserve(BLOCK);
    while places != 0 {
        let at = places.trailing_zeros() as usize;
        parts.push(I::from_index(first + at), elements[at]);
        places &= places - 1;
    }
}

fn matrix_extents(operation: &'static str, shape: &Shape) -> Result<(usize, usize), FormatError> {
    shape.matrix().ok_or(FormatError::Rank { operation, expected: 2, shape: *shape })
}

/// The same conversions on all three arrays, to dense, csr and row_sparse, each by the `assign_…` of its destination.
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
            /// [`FormatError::TooLarge`] if the stored rows cannot be addressed, [`FormatError::OutOfMemory`].
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
            /// [`FormatError::TooLarge`] if the stored rows cannot be addressed, [`FormatError::OutOfMemory`].
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::RowSelection;
    use proptest::prelude::*;

    /// Bits, so that NaN equals itself and -0.0 differs from 0.0.
    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    /// Small matrices, empty ones included, with zeros, whole zero rows, NaN and infinity.
    fn matrices() -> impl Strategy<Value = Dense<f64>> {
        let value = prop_oneof![
            4 => Just(0.0),
            4 => -4.0..4.0f64,
            1 => Just(f64::NAN),
            1 => Just(f64::NEG_INFINITY),
        ];
        (0..7usize, 0..6usize).prop_flat_map(move |(n_rows, n_cols)| {
            let row =
                prop_oneof![Just(vec![0.0; n_cols]), prop::collection::vec(value.clone(), n_cols),];
            prop::collection::vec(row, n_rows)
                .prop_map(move |rows| Dense::new([n_rows, n_cols], rows.concat()).unwrap())
        })
    }

    proptest! {
        #[test]
        fn round_trips_keep_every_bit(dense in matrices()) {
            let csr = dense.to_csr().unwrap();
            let rows = dense.to_row_sparse().unwrap();
            let stored = dense.values().iter().filter(|&&value| value != 0.0).count();
            prop_assert_eq!(csr.nnz(), stored);
            for back in [
                csr.to_dense(),
                rows.to_dense(),
                csr.to_row_sparse().and_then(|rows| rows.to_dense()),
                rows.to_csr().and_then(|csr| csr.to_dense()),
            ] {
                let back = back.unwrap();
                prop_assert_eq!(back.shape(), dense.shape());
                prop_assert_eq!(bits(back.values()), bits(dense.values()));
            }
            let through_rows = rows.to_csr().unwrap();
            prop_assert_eq!(through_rows.indptr(), csr.indptr());
            prop_assert_eq!(through_rows.columns(), csr.columns());
        }

        #[test]
        fn reused_destinations_equal_new_ones(first in matrices(), second in matrices()) {
            // the second conversion must not see what the first one left behind
            let (mut dense, mut csr, mut rows) = (first.clone(), Csr::default(), RowSparse::default());
            csr.assign_dense(first.view()).unwrap();
            rows.assign_dense(first.view());
            csr.assign_dense(second.view()).unwrap();
            rows.assign_dense(second.view());
            dense.assign_csr(csr.view()).unwrap();
            prop_assert_eq!(bits(dense.values()), bits(second.values()));
            dense.assign_dense(first.view());
            dense.assign_row_sparse(rows.view()).unwrap();
            prop_assert_eq!(bits(dense.values()), bits(second.values()));
            rows.assign_csr(csr.view()).unwrap();
            csr.assign_row_sparse(rows.view()).unwrap();
            prop_assert_eq!(bits(csr.to_dense().unwrap().values()), bits(second.values()));
        }

        #[test]
        fn coordinates_add_up_as_in_a_dense_array(
            (n_rows, n_cols, entries) in (1..6usize, 1..6usize).prop_flat_map(|(n_rows, n_cols)| {
                let entry = (0..n_rows, 0..n_cols, -2.0..2.0f64);
                (Just(n_rows), Just(n_cols), prop::collection::vec(entry, 0..40))
            })
        ) {
            let mut sums = Dense::zeros([n_rows, n_cols]);
            for &(row, column, value) in &entries {
                sums.values_mut()[row * n_cols + column] += value;
            }
            let places: std::collections::BTreeSet<_> =
                entries.iter().map(|&(row, column, _)| (row, column)).collect();
            let csr = Csr::from_coo(n_rows, n_cols, entries.clone()).unwrap();
            prop_assert_eq!(csr.nnz(), places.len());
            // the same order of additions, so equal to the last bit
            prop_assert_eq!(csr.to_dense().unwrap(), sums);

            let (ids, values) = entries.iter().map(|&(row, _, value)| (row as u64, value)).unzip();
            let rows = RowSparse::from_unsorted([n_rows], ids, values).unwrap();
            let mut sums = Dense::zeros([n_rows]);
            for &(row, _, value) in &entries {
                sums.values_mut()[row] += value;
            }
            prop_assert_eq!(rows.to_dense().unwrap(), sums);
        }

        #[test]
        fn selections_equal_gathered_dense_rows(
            (dense, picks) in matrices().prop_flat_map(|dense| {
                let n_rows = dense.shape()[0];
                let picks = prop::collection::vec(0..n_rows.max(1), 0..if n_rows == 0 { 1 } else { 9 });
                (Just(dense), picks)
            })
        ) {
            let csr = dense.to_csr().unwrap();
            let mut selection = RowSelection::new();
            let batch = selection.gather(&csr, &picks).unwrap();
            let expected: Vec<f64> =
                picks.iter().flat_map(|&row| dense.row(row).unwrap()).copied().collect();
            prop_assert_eq!(bits(batch.to_dense().unwrap().values()), bits(&expected));
            prop_assert_eq!(batch.nnz(), expected.iter().filter(|&&value| value != 0.0).count());
            let owned = batch.to_owned();
            prop_assert_eq!((owned.nnz(), owned.n_rows()), (batch.nnz(), picks.len()));
            prop_assert_eq!(bits(owned.to_dense().unwrap().values()), bits(&expected));
        }
    }

    #[test]
    fn stored_zeros_stay_between_sparse_arrays() {
        let csr = Csr::new(2, vec![0, 1, 1, 2], vec![0u32, 1], vec![0.0f32, -0.0]).unwrap();
        assert_eq!(csr.to_csr().unwrap(), csr);
        assert_eq!(csr.view().to_owned().nnz(), 2);
        let rows = csr.to_row_sparse().unwrap();
        assert_eq!(rows.indices(), [0, 2]);
        assert_eq!(rows.to_row_sparse().unwrap(), rows);
        assert_eq!(rows.to_csr().unwrap().nnz(), 0);
        assert_eq!(Dense::from_rows(&[[-0.0f32, 0.0]]).to_csr().unwrap().nnz(), 0);
    }

    #[test]
    fn other_ranks_and_sizes_are_errors() {
        let cube = Dense::<f32>::full([2, 2, 2], 1.0);
        assert_eq!(
            cube.to_csr().unwrap_err().to_string(),
            "a conversion to csr needs an array of rank 2, but the shape is [2, 2, 2]: reshape it"
        );
        assert_eq!(cube.to_row_sparse().unwrap().to_dense().unwrap(), cube);
        assert!(cube.to_row_sparse().unwrap().to_csr().is_err());
        let wide = Csr::from_coo(2, usize::MAX, [(1, 7, 1.0f32)]).unwrap();
        assert!(matches!(wide.to_dense(), Err(FormatError::TooLarge { .. })));
        assert!(matches!(wide.to_row_sparse(), Err(FormatError::TooLarge { .. })));
        let tall = RowSparse::new([usize::MAX, 2], vec![5], vec![1.0f32, 2.0]).unwrap();
        assert!(matches!(tall.to_dense(), Err(FormatError::TooLarge { .. })));
        assert!(matches!(tall.to_csr(), Err(FormatError::OutOfMemory { .. })));
        let large = Csr::from_coo(2, 1 << 58, [(1, 7, 1.0f32)]).unwrap();
        assert!(matches!(large.to_dense(), Err(FormatError::OutOfMemory { .. })));
        assert!(matches!(large.to_row_sparse(), Err(FormatError::OutOfMemory { .. })));
        // Rows without elements need no values, but pointers and ids.
        let thin = Dense::<f32>::new([usize::MAX, 0], vec![]).unwrap();
        assert!(matches!(thin.to_csr(), Err(FormatError::OutOfMemory { .. })));
        assert_eq!(thin.to_row_sparse().unwrap().n_stored(), 0);
        let table = RowSparseView::<f32>::all([usize::MAX, 0], &[]).unwrap();
        assert!(matches!(table.to_row_sparse(), Err(FormatError::OutOfMemory { .. })));
        assert!(matches!(table.slice_rows(1..usize::MAX), Err(FormatError::OutOfMemory { .. })));
        assert_eq!(table, table);
    }

    #[test]
    fn a_table_of_all_rows_converts() {
        let values = [1.0f32, 0.0, 0.0, 0.0];
        let table = RowSparseView::all([2, 2], &values).unwrap();
        assert_eq!(table.to_dense().unwrap().values(), values);
        assert_eq!(table.to_csr().unwrap(), Csr::from_rows(2, [vec![(0, 1.0)], vec![]]).unwrap());
        assert_eq!(table.to_row_sparse().unwrap().indices(), [0, 1]);
    }
}
