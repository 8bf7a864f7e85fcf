//! Casts on a GPU, and zeros.

use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{Csr, CsrView, Dense, DenseView, RowIdsView, RowSparse, RowSparseView};
use crate::kernels::cuda::csr_rows::{self, Source};
use crate::kernels::cuda::row_lists::{self, PlacedRows, Stored as StoredRows, Values};
use crate::kernels::cuda::{CudaContext, GpuFloat, Pattern as _};
use crate::kernels::strided::Strided;
use sparse_core::element::{Factor, Stored};

const THREADS: u32 = 256;

/// A copy.
pub fn dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| out.assign_on(gpu, *x.shape(), x.values()));
}

/// Zeros and what is stored.
pub fn dense_csr<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    x: CsrView<'_, V, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let (n_rows, n_cols) = (x.n_rows(), x.n_cols());
        let table = out.zeros_on(gpu, [n_rows, n_cols].into())?;
        let words = words(T::TYPE.name(), V::TYPE.name(), x.columns().type_name());
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "scatter_entries")?).csr(x);
        let launch = launch.writes(table).size(n_rows).size(n_cols);
        // SAFETY: columns are below their number, each once in a row.
        unsafe { launch.launch(Blocks::of(n_rows, THREADS as usize / 32, THREADS)) }
    });
}

/// Zeros and the stored rows.
pub fn dense_row_sparse<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let RowIdsView::Listed(rows) = x.indices() else {
            return out.assign_on(gpu, *x.shape(), x.values());
        };
        let table = out.zeros_on(gpu, *x.shape())?;
        let words = words(T::TYPE.name(), T::TYPE.name(), "u32");
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "scatter_rows")?);
        let launch = launch.reads(rows).reads(x.values()).writes(table);
        let launch = launch.size(x.shape().row_size()).size(x.values().len());
        // SAFETY: row ids are below the number of rows, each once, and there is a row of values for
        // each.
        unsafe { launch.launch(Blocks::of(x.values().len(), THREADS as usize, THREADS)) }
    });
}

/// A copy, stored zeros included; of a pattern its ones.
pub fn csr_csr<T: GpuFloat, V: Factor<T>>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, V, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| numbers(gpu, out.take_pattern(gpu, x)?, x.values()));
}

/// What is not zero.
pub fn csr_dense<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    csr_row_sparse(out, RowSparseView::all_on_gpu(x), context);
}

/// What is not zero in the stored rows.
pub fn csr_row_sparse<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let shape = [x.shape().n_rows(), x.shape().row_size()];
    csr_rows::make(out, shape, Source::not_zero(x), context);
}

/// The rows that have an element other than zero.
pub fn row_sparse_dense<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let along = Strided::at(0).axis(x.shape().row_size(), 1);
    let positions = row_lists::all(x.shape().n_rows());
    let place = PlacedRows { of: RowSparseView::all_on_gpu(x), positions, along };
    row_lists::make(out, *x.shape(), StoredRows::NotZero(x), Values::Gathered(&place), context);
}

/// The rows that have a stored entry.
pub fn row_sparse_csr<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let shape = [x.n_rows(), x.n_cols()].into();
    row_lists::make(out, shape, StoredRows::NotEmpty(x), Values::Entries(x), context);
}

/// A copy.
pub fn row_sparse_row_sparse<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| numbers(gpu, x.give(gpu, out)?, x.values()));
}

/// A dense array of zeros.
pub fn zeros_like_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| out.zeros_on(gpu, *x.shape()).map(drop));
}

/// A csr matrix that stores nothing.
pub fn zeros_like_csr<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| out.reset_on(gpu, [x.n_rows(), x.n_cols()]));
}

/// A row_sparse array that stores nothing.
pub fn zeros_like_row_sparse<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| out.store_rows(gpu, *x.shape(), CudaSlice::default()).map(drop));
}

/// What a csr stores, as numbers.
pub(in crate::kernels) fn numbers<T: GpuFloat, V: Stored>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    values: CudaSlice<'_, V>,
) -> Result<(), CudaError> {
    let words = words(T::TYPE.name(), V::TYPE.name(), "u32");
    let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "numbers_of")?);
    let launch = launch.reads(values).writes(out).size(out.len());
    // SAFETY: there are as many of both.
    unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
}

fn words(real: &'static str, value: &'static str, id: &'static str) -> [(&'static str, Word); 3] {
    [("REAL", Word::Name(real)), ("VALUE", Word::Name(value)), ("ID", Word::Name(id))]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/casts/dense.cu", text: include_str!("dense.cu"), words }
}

/// Visits these units.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", "f32", "u32")));
    visit(&unit(&words("f32", "unit", "u64")));
}
