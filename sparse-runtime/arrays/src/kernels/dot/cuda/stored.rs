//! Products on a GPU with an array of which only some rows are stored, the others being zero and
//! taking no part, and those whose result is sparse or lies the other way.

use super::{
    Factors, Groups, Lists, Matrix, THREADS, Target, multiply, sum_columns, sum_stored_rows, unit,
    words,
};
use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Destination, Gpu, Launch};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView, Shape, fits_u32};
use crate::kernels::cuda::row_lists::{Stored, store_rows_of};
use crate::kernels::cuda::{CudaContext, GpuFloat, Rows};
use crate::kernels::dot::cpu::{by_rows, product_shape};
use sparse_core::element::Factor;

/// Dense by row_sparse.
pub fn dense_row_sparse<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    lhs: DenseView<'_, T, Cuda>,
    rhs: RowSparseView<'_, T, Cuda>,
    transpose_lhs: bool,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, partial, .. } = context;
    gpu.attempt(out, |out| {
        let (right, rows) = of_stored(rhs);
        // Of the left side those columns are read that are rows of the right one.
        let left = Matrix { n_cols: right.n_rows, ..Matrix::left(lhs, transpose_lhs) };
        let shape = product_shape(left.n_rows, right.n_cols, lhs.shape(), rhs.shape());
        let lists = Lists { of_left: rows, ..Lists::default() };
        multiply(gpu, out.reset_on(gpu, shape)?, left, right, lists, partial)
    });
}

/// Dense by row_sparse transposed: the columns of rows that are not stored are zero.
pub fn dense_row_sparse_transposed<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    lhs: DenseView<'_, T, Cuda>,
    rhs: RowSparseView<'_, T, Cuda>,
    transpose_lhs: bool,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, partial, .. } = context;
    gpu.attempt(out, |out| {
        let (left, n_cols) = (Matrix::left(lhs, transpose_lhs), rhs.shape().n_rows());
        let (right, columns) = of_stored(rhs);
        let shape = product_shape(left.n_rows, n_cols, lhs.shape(), rhs.shape());
        let lists = Lists { columns, width: n_cols, ..Lists::default() };
        multiply(gpu, out.zeros_on(gpu, shape)?, left, right.transposed(), lists, partial)
    });
}

/// Csr by row_sparse transposed, likewise.
pub fn csr_row_sparse_transposed<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    lhs: CsrView<'_, V, Cuda>,
    rhs: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let (right, columns) = of_stored(rhs);
        let (right, width) = (right.transposed(), rhs.shape().n_rows());
        let out = out.zeros_on(gpu, [lhs.n_rows(), width].into())?;
        let target = Target { columns, row_step: width, column_step: 1 };
        sum_stored_rows(gpu, out, lhs, (CudaSlice::default(), right.n_rows), right, target)
    });
}

/// Csr, transposed, by row_sparse: of the rows of the result those are made that are columns which
/// occur in rows that the right side stores.
pub fn csr_transposed_row_sparse<T: GpuFloat, V: Factor<T>, O: Rows<T>>(
    out: &mut O,
    lhs: CsrView<'_, V, Cuda>,
    rhs: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, occurrences, list, .. } = context;
    gpu.attempt(out, |out| {
        occurrences.find_in_rows(gpu, lhs, rhs, list)?;
        let (right, _) = of_stored(rhs);
        let shape = by_rows(lhs.n_cols(), right.n_cols, rhs.shape());
        let (sums, targets) = out.make_room(gpu, shape, occurrences.columns())?;
        let factors = Factors::of(lhs.values());
        sum_columns(gpu, sums, factors, occurrences, right, [right.n_cols, 1], targets)
    });
}

/// An array on a GPU that may be the product of a dense matrix and a csr.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array on a GPU that a dense matrix by a csr gives",
    note = "it gives a `Csr<{T}, Cuda>` or a `Dense<{T}, Cuda>`"
)]
#[allow(private_bounds, reason = "what a failed kernel leaves is the library's business")]
pub trait ProductOfColumns<T: GpuFloat>: Destination {
    /// Takes the extents of a product and the columns that occur. Gives its memory, the steps there
    /// from column to column and from row to row, and which columns they are if not the first ones.
    #[doc(hidden)]
    #[allow(clippy::type_complexity, reason = "said above")]
    fn make_columns<'o>(
        &'o mut self,
        gpu: &Gpu,
        shape: [usize; 2],
        columns: CudaSlice<'o, u64>,
    ) -> Result<(CudaSlice<'o, T>, [usize; 2], CudaSlice<'o, u64>), CudaError>;
}

impl<T: GpuFloat> ProductOfColumns<T> for Dense<T, Cuda> {
    fn make_columns<'o>(
        &'o mut self,
        gpu: &Gpu,
        [n_rows, n_cols]: [usize; 2],
        columns: CudaSlice<'o, u64>,
    ) -> Result<(CudaSlice<'o, T>, [usize; 2], CudaSlice<'o, u64>), CudaError> {
        Ok((self.zeros_on(gpu, [n_rows, n_cols].into())?, [1, n_cols], columns))
    }
}

impl<T: GpuFloat> ProductOfColumns<T> for Csr<T, Cuda> {
    fn make_columns<'o>(
        &'o mut self,
        gpu: &Gpu,
        [n_rows, n_cols]: [usize; 2],
        columns: CudaSlice<'o, u64>,
    ) -> Result<(CudaSlice<'o, T>, [usize; 2], CudaSlice<'o, u64>), CudaError> {
        let (width, n) = (columns.len(), columns.len() * n_rows);
        self.make_row_pointers(gpu, n_rows)?;
        let (indptr, ids, values) = self.make_entries(gpu, n_cols, n)?;
        let id = if fits_u32(n_cols) { "u32" } else { "u64" };
        let words = words(T::TYPE.name(), T::TYPE.name(), id, Groups::for_columns(1));
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "repeat_columns")?);
        let launch = launch.reads(columns).size(width).writes(indptr).writes_columns(ids);
        let blocks = Blocks::of(n.max(n_rows + 1), THREADS as usize, THREADS);
        // SAFETY: there is a row pointer for each row and one more, and an id for each column of
        // each row.
        unsafe { launch.size(n_rows).launch(blocks) }?;
        Ok((values, [1, width], CudaSlice::default()))
    }
}

/// Dense by csr: every row stores all columns that occur on the right.
pub fn dense_csr<T: GpuFloat, V: Factor<T>, O: ProductOfColumns<T>>(
    out: &mut O,
    lhs: DenseView<'_, T, Cuda>,
    rhs: CsrView<'_, V, Cuda>,
    transpose_lhs: bool,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, occurrences, .. } = context;
    gpu.attempt(out, |out| {
        // The product of the transposed matrices, the other way round.
        let left = Matrix::new(lhs, transpose_lhs);
        occurrences.find(gpu, rhs)?;
        let shape = [left.n_rows, rhs.n_cols()];
        let (sums, steps, targets) = out.make_columns(gpu, shape, occurrences.columns())?;
        let factors = Factors::of(rhs.values());
        sum_columns(gpu, sums, factors, occurrences, left.transposed(), steps, targets)
    });
}

/// Dense by csr transposed.
pub fn dense_csr_transposed<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    lhs: DenseView<'_, T, Cuda>,
    rhs: CsrView<'_, V, Cuda>,
    transpose_lhs: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let left = Matrix::left(lhs, transpose_lhs);
        let matrix = Shape::from([rhs.n_rows(), rhs.n_cols()]);
        let shape = product_shape(left.n_rows, rhs.n_rows(), lhs.shape(), &matrix);
        let out = out.reset_on(gpu, shape)?;
        // The product of the transposed matrices, the other way round.
        let (columns, right) = (CudaSlice::default(), left.transposed());
        let target = Target { columns, row_step: 1, column_step: rhs.n_rows() };
        sum_stored_rows(gpu, out, rhs, (columns, right.n_rows), right, target)
    });
}

/// Row_sparse by dense: the rows are those of the left side.
pub fn row_sparse_dense<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    lhs: RowSparseView<'_, T, Cuda>,
    rhs: DenseView<'_, T, Cuda>,
    transpose_rhs: bool,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, partial, occurrences, list, .. } = context;
    gpu.attempt(out, |out| {
        let ((left, _), right) = (of_stored(lhs), Matrix::new(rhs, transpose_rhs));
        Stored::Of(lhs).find(lhs.shape().n_rows(), list, occurrences, gpu)?;
        let shape = by_rows(lhs.shape().n_rows(), right.n_cols, rhs.shape());
        let values = out.store_rows(gpu, shape, occurrences.columns())?;
        multiply(gpu, values, left, right, Lists::default(), partial)
    });
}

/// Row_sparse transposed by dense.
pub fn row_sparse_transposed_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    lhs: RowSparseView<'_, T, Cuda>,
    rhs: DenseView<'_, T, Cuda>,
    transpose_rhs: bool,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, partial, .. } = context;
    gpu.attempt(out, |out| {
        let (left, rows) = of_stored(lhs);
        let right = Matrix { n_rows: left.n_rows, ..Matrix::new(rhs, transpose_rhs) };
        let shape = by_rows(left.n_cols, right.n_cols, rhs.shape());
        let lists = Lists { of_right: rows, ..Lists::default() };
        multiply(gpu, out.reset_on(gpu, shape)?, left.transposed(), right, lists, partial)
    });
}

/// Row_sparse transposed by row_sparse: the rows that both store take part.
pub fn row_sparse_transposed_row_sparse<'a, T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    lhs: RowSparseView<'a, T, Cuda>,
    rhs: RowSparseView<'a, T, Cuda>,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, partial, occurrences, list, places, .. } = context;
    gpu.attempt(out, |out| {
        Stored::Both(lhs, rhs).find(lhs.shape().n_rows(), list, occurrences, gpu)?;
        let common = occurrences.columns();
        let ((left, _), (right, _)) = (of_stored(lhs), of_stored(rhs));
        for (of, places) in [(lhs, &mut *places), (rhs, &mut *list)] {
            places.resize_for_overwrite(gpu, common.len(), "places of rows")?;
            let words = words(T::TYPE.name(), T::TYPE.name(), "u32", Groups::for_columns(1));
            let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "places_of_rows")?);
            let (rows, n_stored) = of.stored_on_gpu();
            let launch = launch.reads(common).reads(rows).size(n_stored).writes(places.as_slice());
            let blocks = Blocks::of(common.len(), THREADS as usize, THREADS);
            // SAFETY: there is a place for each row of the list.
            unsafe { launch.size(common.len()).launch(blocks) }?;
        }
        let out = out.reset_on(gpu, by_rows(left.n_cols, right.n_cols, rhs.shape()))?;
        let (left, right) = (left.transposed(), Matrix { n_rows: common.len(), ..right });
        let left = Matrix { n_cols: common.len(), ..left };
        let (of_left, of_right) = (places.as_slice(), list.as_slice());
        let lists = Lists { of_left, of_right, ..Lists::default() };
        multiply(gpu, out, left, right, lists, partial)
    });
}

/// The products of the elements of a column and those of a row, at `columns` of a width if not at
/// the first ones.
pub(in crate::kernels) fn outer<T: GpuFloat>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    column: CudaSlice<'_, T>,
    row: CudaSlice<'_, T>,
    columns: CudaSlice<'_, u64>,
    width: usize,
) -> Result<(), CudaError> {
    let (n_rows, n_cols) = (column.len(), row.len());
    let left = Matrix { values: column, n_rows, n_cols: 1, row_step: 1, column_step: 1 };
    let right = Matrix { values: row, n_rows: 1, n_cols, row_step: n_cols, column_step: 1 };
    let lists = Lists { columns, width, ..Lists::default() };
    multiply(gpu, out, left, right, lists, &mut Default::default())
}

/// The product of a dense matrix and rows of another at the entries of a csr, by the rows that are
/// its columns.
pub(in crate::kernels) fn at_pattern<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    (lhs, transpose_lhs): (DenseView<'_, T, Cuda>, bool),
    (rhs, by_columns): (RowSparseView<'_, T, Cuda>, bool),
    like: CsrView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let left = Matrix::new(lhs, transpose_lhs);
        let right = Matrix::of(rhs.shape(), rhs.values(), by_columns);
        let (rows, n_stored) = rhs.stored_on_gpu();
        let n_stored = if by_columns { right.n_rows } else { n_stored };
        let out = out.take_pattern(gpu, like)?;
        let id = like.columns().type_name();
        let words = words(T::TYPE.name(), T::TYPE.name(), id, Groups::for_columns(1));
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "at_pattern")?);
        let launch = launch.reads(like.starts()).reads(like.ends()).columns(like.columns());
        let launch = right.read_by(left.read_by(launch).reads(rows).size(n_stored));
        let launch = launch.writes(out).size(like.n_rows()).size(left.n_cols);
        // SAFETY: the rows of `like` are those of the left side, its columns rows of the right one,
        // and `out` has its pattern.
        unsafe { launch.launch(Blocks::of(like.n_rows(), THREADS as usize / 32, THREADS)) }
    });
}

/// The product of two dense matrices at the rows that an array stores.
pub(in crate::kernels) fn at_rows<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    (lhs, transpose_lhs): (DenseView<'_, T, Cuda>, bool),
    (rhs, transpose_rhs): (DenseView<'_, T, Cuda>, bool),
    like: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let left = Matrix::new(lhs, transpose_lhs);
        let right = Matrix::of(rhs.shape(), rhs.values(), !transpose_rhs);
        let (shape, (rows, _)) = (*like.shape(), like.stored_on_gpu());
        let out = store_rows_of(gpu, out, shape, like)?;
        let words = words(T::TYPE.name(), T::TYPE.name(), "u32", Groups::for_columns(1));
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "at_rows")?).reads(rows);
        let launch = right.read_by(left.read_by(launch)).size(left.n_cols);
        let launch = launch.size(shape.row_size().max(1)).writes(out).size(out.len());
        // SAFETY: the rows of `like` are those of the left side, its columns rows of the right one,
        // and `out` has its rows.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    });
}

/// The product at the entries of a csr by the rows over which is summed: those that the right side
/// stores.
pub(in crate::kernels) fn at_pattern_by_stored_rows<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    (lhs, transpose_lhs): (DenseView<'_, T, Cuda>, bool),
    rhs: RowSparseView<'_, T, Cuda>,
    like: CsrView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let left = Matrix::new(lhs, transpose_lhs);
        let (right, rows) = of_stored(rhs);
        let out = out.take_pattern(gpu, like)?;
        let id = like.columns().type_name();
        let words = words(T::TYPE.name(), T::TYPE.name(), id, Groups::for_columns(1));
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "at_pattern_by_stored_rows")?);
        let launch = launch.reads(like.starts()).reads(like.ends()).columns(like.columns());
        let launch = right.read_by(left.read_by(launch).reads(rows).size(right.n_rows));
        let launch = launch.writes(out).size(like.n_rows());
        // SAFETY: the rows of `like` are those of the left side, its columns those of the right
        // one, and `out` has its pattern.
        unsafe { launch.launch(Blocks::of(like.n_rows(), THREADS as usize / 32, THREADS)) }
    });
}

/// Adds a row to each row of a matrix.
pub(in crate::kernels) fn add_to_rows<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    bias: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let words = words(T::TYPE.name(), T::TYPE.name(), "u32", Groups::for_columns(1));
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "add_to_rows")?);
        let (out, n_cols) = (out.view().values(), bias.values().len());
        let launch = launch.reads(bias.values()).writes(out).size(n_cols).size(out.len());
        // SAFETY: the rows have as many elements as the bias.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    });
}

/// The rows that an array stores as a matrix, and their numbers, nothing where it stores all.
fn of_stored<'a, T: GpuFloat>(
    x: RowSparseView<'a, T, Cuda>,
) -> (Matrix<'a, T>, CudaSlice<'a, u64>) {
    let (rows, n_rows) = x.stored_on_gpu();
    let n_cols = x.shape().row_size();
    (Matrix { values: x.values(), n_rows, n_cols, row_step: n_cols, column_step: 1 }, rows)
}

impl<T: GpuFloat> Matrix<'_, T> {
    fn transposed(self) -> Self {
        Matrix {
            n_rows: self.n_cols,
            n_cols: self.n_rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }
}
