//! Arrays on a GPU: transfers, and what kernels take of them.

use super::{Csr, CsrView, Dense, DenseView, IdsView, RowIdsView, RowSparse, RowSparseView, Shape};
use crate::device::cuda::{
    Cuda, CudaBuffer, CudaColumnIdsSlice, CudaError, CudaSlice, Destination, Gpu,
};
use crate::with_ids;
use sparse_core::element::{Element, Stored};
use std::fmt;

const ELEMENTS: &str = "the elements of a dense array";
const ROW_POINTERS: &str = "the row pointers of a csr";
const VALUES: &str = "the values of a csr";
const ROW_IDS: &str = "the row ids of a row_sparse array";
const ROWS: &str = "the rows of a row_sparse array";

impl<T: Element> Dense<T> {
    /// A copy on a GPU.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfMemory`].
    pub fn to_gpu(&self, gpu: &Gpu) -> Result<Dense<T, Cuda>, CudaError> {
        self.view().to_gpu(gpu)
    }
}

impl<T: Element> DenseView<'_, T> {
    /// A copy on a GPU.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfMemory`].
    pub fn to_gpu(&self, gpu: &Gpu) -> Result<Dense<T, Cuda>, CudaError> {
        let mut array = Dense::default();
        array.assign_from_host(gpu, *self)?;
        Ok(array)
    }
}

impl<T: Element> Dense<T, Cuda> {
    /// A copy on the host, after all earlier work.
    ///
    /// # Errors
    ///
    /// As [`Gpu::synchronize`].
    pub fn to_cpu(&self) -> Result<Dense<T>, CudaError> {
        Ok(Dense { shape: self.shape, values: self.values.to_host()?.into() })
    }

    /// Becomes a copy of an array of the host, in its memory if there is room.
    pub fn assign_from_host(&mut self, gpu: &Gpu, of: DenseView<'_, T>) -> Result<(), CudaError> {
        self.values.assign_from_host(gpu, of.values(), ELEMENTS)?;
        self.shape = *of.shape();
        Ok(())
    }

    /// Becomes an array of this shape with whatever values were left in its memory.
    pub fn reset_on(&mut self, gpu: &Gpu, shape: Shape) -> Result<CudaSlice<'_, T>, CudaError> {
        self.values.resize_for_overwrite(gpu, shape.size(), ELEMENTS)?;
        self.shape = shape;
        Ok(self.values.as_slice())
    }

    /// Takes the shape of an array, with whatever values were left in its memory.
    pub(crate) fn take_pattern(
        &mut self,
        gpu: &Gpu,
        of: DenseView<'_, T, Cuda>,
    ) -> Result<CudaSlice<'_, T>, CudaError> {
        self.reset_on(gpu, *of.shape())
    }

    /// Becomes an array of this shape with a copy of these elements.
    pub fn assign_on(
        &mut self,
        gpu: &Gpu,
        shape: Shape,
        values: CudaSlice<'_, T>,
    ) -> Result<(), CudaError> {
        self.values.assign(gpu, values, ELEMENTS)?;
        self.shape = shape;
        Ok(())
    }

    /// Takes a shape of as many elements.
    pub(crate) fn take_shape(&mut self, shape: Shape) {
        debug_assert_eq!(shape.size(), self.shape.size());
        self.shape = shape;
    }

    /// Becomes zeros of this shape.
    pub(crate) fn zeros_on(
        &mut self,
        gpu: &Gpu,
        shape: Shape,
    ) -> Result<CudaSlice<'_, T>, CudaError> {
        self.reset_on(gpu, shape)?;
        // The zero of every element type has no bits.
        self.values.fill_bytes(0)?;
        Ok(self.values.as_slice())
    }
}

impl<T: Stored> Csr<T> {
    /// A copy on a GPU.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfMemory`].
    pub fn to_gpu(&self, gpu: &Gpu) -> Result<Csr<T, Cuda>, CudaError> {
        let mut array = Csr::default();
        array.assign_from_host(gpu, self)?;
        Ok(array)
    }
}

impl<T: Stored> CsrView<'_, T> {
    /// A copy of its rows on a GPU, one after the other, whatever rows of a matrix they are.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfMemory`].
    pub fn to_gpu(&self, gpu: &Gpu) -> Result<Csr<T, Cuda>, CudaError> {
        self.to_owned().to_gpu(gpu)
    }
}

impl<T: Stored> Csr<T, Cuda> {
    /// Becomes a copy of a matrix of the host, in its memory if there is room.
    pub(crate) fn assign_from_host(&mut self, gpu: &Gpu, of: &Csr<T>) -> Result<(), CudaError> {
        self.indptr.assign_from_host(gpu, of.indptr(), ROW_POINTERS)?;
        self.columns.assign_from_host(gpu, of.columns())?;
        self.values.assign_from_host(gpu, of.values(), VALUES)?;
        self.n_cols = of.n_cols;
        Ok(())
    }

    /// A copy on the host, after all earlier work.
    ///
    /// # Errors
    ///
    /// As [`Gpu::synchronize`].
    pub fn to_cpu(&self) -> Result<Csr<T>, CudaError> {
        Ok(Csr {
            n_cols: self.n_cols,
            indptr: self.indptr.to_host()?,
            columns: self.columns.to_host()?,
            values: self.values.to_host()?,
        })
    }

    /// Takes the size and pattern of a matrix, with whatever values were left in its memory.
    pub(crate) fn take_pattern<V: Stored>(
        &mut self,
        gpu: &Gpu,
        of: CsrView<'_, V, Cuda>,
    ) -> Result<CudaSlice<'_, T>, CudaError> {
        self.values.resize_for_overwrite(gpu, of.values().len(), VALUES)?;
        self.columns.assign(gpu, of.columns)?;
        self.indptr.assign(gpu, of.indptr(), ROW_POINTERS)?;
        self.n_cols = of.n_cols;
        Ok(self.values.as_slice())
    }
}

impl<T: Stored> Csr<T, Cuda> {
    /// Takes a number of rows: where they start and the last ends is to be written.
    pub(crate) fn make_row_pointers(
        &mut self,
        gpu: &Gpu,
        n_rows: usize,
    ) -> Result<CudaSlice<'_, u64>, CudaError> {
        self.indptr.resize_for_overwrite(gpu, n_rows + 1, ROW_POINTERS)?;
        Ok(self.indptr.as_slice())
    }

    /// Takes a width and room for entries, which are to be written. Gives the row pointers too.
    #[allow(clippy::type_complexity, reason = "the parts of a csr")]
    pub(crate) fn make_entries(
        &mut self,
        gpu: &Gpu,
        n_cols: usize,
        nnz: usize,
    ) -> Result<(CudaSlice<'_, u64>, CudaColumnIdsSlice<'_>, CudaSlice<'_, T>), CudaError> {
        self.columns.resize_for_overwrite(gpu, nnz, n_cols)?;
        self.values.resize_for_overwrite(gpu, nnz, VALUES)?;
        self.n_cols = n_cols;
        Ok((self.indptr.as_slice(), self.columns.as_slice(), self.values.as_slice()))
    }

    /// Becomes a matrix that stores nothing.
    pub(crate) fn reset_on(
        &mut self,
        gpu: &Gpu,
        [n_rows, n_cols]: [usize; 2],
    ) -> Result<(), CudaError> {
        self.make_row_pointers(gpu, n_rows)?;
        self.indptr.fill_bytes(0)?;
        self.make_entries(gpu, n_cols, 0).map(drop)
    }
}

/// Invariant, beside that of [`CsrView`]: the view is of a whole matrix, whose entries are those of
/// its rows, row after row.
impl<'a, T: Stored> CsrView<'a, T, Cuda> {
    /// A whole matrix, of arrays that are those of one.
    pub fn of_slices(
        n_cols: usize,
        indptr: CudaSlice<'a, u64>,
        columns: CudaColumnIdsSlice<'a>,
        values: CudaSlice<'a, T>,
    ) -> Self {
        debug_assert_eq!(columns.len(), values.len());
        let n_rows = indptr.len() - 1;
        let (starts, ends) = (indptr.run(0, n_rows), indptr.run(1, n_rows));
        CsrView { n_cols, starts, ends, columns, values, upcoming: (0, 0), divided: None }
    }

    /// Where each row starts, and where the last one ends; nothing where there are no rows.
    pub(crate) fn indptr(&self) -> CudaSlice<'a, u64> {
        if self.starts.is_empty() { self.starts } else { self.starts.with_next() }
    }
}

impl<T: Element> RowSparse<T> {
    /// A copy on a GPU.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfMemory`].
    pub fn to_gpu(&self, gpu: &Gpu) -> Result<RowSparse<T, Cuda>, CudaError> {
        Ok(RowSparse {
            shape: *self.shape(),
            indices: CudaBuffer::from_host(gpu, self.indices(), ROW_IDS)?,
            values: CudaBuffer::from_host(gpu, self.values(), ROWS)?,
        })
    }
}

impl<T: Element> RowSparse<T, Cuda> {
    /// A copy on the host, after all earlier work.
    ///
    /// # Errors
    ///
    /// As [`Gpu::synchronize`].
    pub fn to_cpu(&self) -> Result<RowSparse<T>, CudaError> {
        Ok(RowSparse {
            shape: self.shape,
            indices: self.indices.to_host()?,
            values: self.values.to_host()?.into(),
        })
    }

    /// Takes the shape of an array and the rows that it stores, with whatever values were left in
    /// its memory.
    pub(crate) fn take_pattern(
        &mut self,
        gpu: &Gpu,
        of: RowSparseView<'_, T, Cuda>,
    ) -> Result<CudaSlice<'_, T>, CudaError> {
        match of.indices() {
            RowIdsView::Listed(rows) => self.store_rows(gpu, *of.shape(), rows),
            RowIdsView::All => {
                let rows: Vec<u64> = (0..of.shape().n_rows() as u64).collect();
                let rows = CudaBuffer::from_host(gpu, &rows, ROW_IDS)?;
                self.store_rows(gpu, *of.shape(), rows.as_slice())
            }
        }
    }

    /// Becomes an array of this shape that stores these rows, with whatever values were left in its
    /// memory.
    pub(crate) fn store_rows(
        &mut self,
        gpu: &Gpu,
        shape: Shape,
        rows: CudaSlice<'_, u64>,
    ) -> Result<CudaSlice<'_, T>, CudaError> {
        self.values.resize_for_overwrite(gpu, rows.len().saturating_mul(shape.row_size()), ROWS)?;
        self.indices.assign(gpu, rows, ROW_IDS)?;
        self.shape = shape;
        Ok(self.values.as_slice())
    }

    /// Becomes an array of this shape that stores so many rows, whose ids are to be written with
    /// their values.
    pub(crate) fn make_rows(
        &mut self,
        gpu: &Gpu,
        shape: Shape,
        n_stored: usize,
    ) -> Result<(CudaSlice<'_, u64>, CudaSlice<'_, T>), CudaError> {
        self.values.resize_for_overwrite(gpu, n_stored.saturating_mul(shape.row_size()), ROWS)?;
        self.indices.resize_for_overwrite(gpu, n_stored, ROW_IDS)?;
        self.shape = shape;
        Ok((self.indices.as_slice(), self.values.as_slice()))
    }
}

impl<'a, T: Element> DenseView<'a, T, Cuda> {
    /// Elements in a shape that has as many.
    pub fn of_slice(shape: Shape, values: CudaSlice<'a, T>) -> Self {
        debug_assert_eq!(shape.size(), values.len());
        DenseView { shape, values }
    }

    /// Elements one after the other.
    pub(crate) fn listed_on_gpu(values: CudaSlice<'a, T>) -> Self {
        DenseView { shape: [values.len()].into(), values }
    }

    /// The rows that an array stores, one after the other.
    pub(crate) fn stored_on_gpu(x: RowSparseView<'a, T, Cuda>) -> Self {
        let (_, n_stored) = x.stored_on_gpu();
        DenseView { shape: x.shape().with_n_rows(n_stored), values: x.values() }
    }

    /// The same elements in a shape that has as many.
    pub(crate) fn reshaped(&self, shape: Shape) -> Self {
        debug_assert_eq!(shape.size(), self.values.len());
        DenseView { shape, values: self.values }
    }
}

impl<'a, T: Element> RowSparseView<'a, T, Cuda> {
    /// The table of a parameter: every row is stored.
    pub(crate) fn all_on_gpu(table: DenseView<'a, T, Cuda>) -> Self {
        RowSparseView { shape: *table.shape(), indices: RowIdsView::All, values: table.values() }
    }

    /// An array that stores these rows, ascending.
    pub fn of_slices(shape: Shape, rows: CudaSlice<'a, u64>, values: CudaSlice<'a, T>) -> Self {
        RowSparseView { shape, indices: RowIdsView::Listed(rows), values }
    }

    /// All of so many rows without elements: their numbers.
    pub(crate) fn numbers_on_gpu(n_rows: usize) -> Self {
        let (shape, values) = ([n_rows, 0].into(), CudaSlice::default());
        RowSparseView { shape, indices: RowIdsView::All, values }
    }

    /// The numbers of the rows that are stored, nothing where all are, and how many they are.
    pub(crate) fn stored_on_gpu(&self) -> (CudaSlice<'a, u64>, usize) {
        match self.indices() {
            RowIdsView::All => (CudaSlice::default(), self.shape().n_rows()),
            RowIdsView::Listed(ids) => (ids, ids.len()),
        }
    }
}

impl<'a> IdsView<'a, Cuda> {
    /// The extents.
    pub fn shape(&self) -> &Shape {
        with_ids!(IdsView, self, |ids| ids.shape())
    }

    /// The number of ids.
    pub fn len(&self) -> usize {
        self.shape().size()
    }

    /// The type of an id, as texts of kernels call it.
    pub fn type_name(&self) -> &'static str {
        fn name<I: Element>(_: &DenseView<'_, I, Cuda>) -> &'static str {
            I::TYPE.name()
        }
        with_ids!(IdsView, self, |ids| name(ids))
    }
}

impl<T: Element> Destination for Dense<T, Cuda> {
    fn store_nothing(&mut self, gpu: &Gpu) {
        *self = Dense::default();
        self.values.clear(gpu);
    }
}

impl<T: Stored> Destination for Csr<T, Cuda> {
    fn store_nothing(&mut self, gpu: &Gpu) {
        *self = Csr::default();
        self.indptr.clear(gpu);
    }
}

impl<T: Element> Destination for RowSparse<T, Cuda> {
    fn store_nothing(&mut self, gpu: &Gpu) {
        *self = RowSparse::default();
        self.indices.clear(gpu);
    }
}

/// Storage, extents and element type: the elements are elsewhere.
impl<T: Element> fmt::Debug for Dense<T, Cuda> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dense {} {} on a GPU", self.shape, T::TYPE)
    }
}

/// Storage, extents and element type: the entries are elsewhere.
impl<T: Stored> fmt::Debug for Csr<T, Cuda> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = Shape::from([self.n_rows(), self.n_cols()]);
        write!(f, "csr {shape} {}, {} stored, on a GPU", T::TYPE, self.nnz())
    }
}

/// Storage, extents and element type: the rows are elsewhere.
impl<T: Element> fmt::Debug for RowSparse<T, Cuda> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row_sparse {} {}, {} stored, on a GPU", self.shape, T::TYPE, self.n_stored())
    }
}
