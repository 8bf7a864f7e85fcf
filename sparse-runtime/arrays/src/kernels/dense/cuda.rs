//! The cast to dense on a GPU: what is not stored is 0.

use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word};
use crate::formats::{CsrView, Dense, DenseView, RowIdsView, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use sparse_core::element::{Factor, Stored};

const THREADS: u32 = 256;

/// A copy.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| out.assign_on(gpu, *x.shape(), x.values()));
}

/// Zeros and what is stored.
pub fn csr<T: GpuFloat, V: Factor<T>>(
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
pub fn row_sparse<T: GpuFloat>(
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
    Unit { file: "kernels/dense/dense.cu", text: include_str!("dense.cu"), words }
}

/// Visits these units.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", "f32", "u32")));
    visit(&unit(&words("f32", "unit", "u64")));
}
