//! One of two arrays by a condition, on a GPU.

use crate::device::cuda::{Blocks, Cuda, Launch, Unit, Word};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};

const THREADS: u32 = 256;

/// By a dense condition.
pub fn dense_dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    condition: DenseView<'_, T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    y: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    // All elements as one row, of whatever rank.
    let n = condition.values().len();
    let condition = RowSparseView::all_on_gpu(condition.reshaped([1, n].into()));
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, *x.shape())?;
        let words = words(T::TYPE.name(), "u32");
        let launch =
            Launch::new(gpu, gpu.kernel(&unit(&words), "select_elements")?).rows(condition);
        let launch = launch.size(n).reads(x.values()).reads(y.values()).writes(out).size(n);
        // SAFETY: all have as many elements.
        unsafe { launch.launch(Blocks::of(n, THREADS as usize, THREADS)) }
    });
}

/// By a csr condition.
pub fn csr_dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    condition: CsrView<'_, T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    y: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        out.assign_on(gpu, *y.shape(), y.values())?;
        let (n_rows, n_cols) = (condition.n_rows(), condition.n_cols());
        let words = words(T::TYPE.name(), condition.columns().type_name());
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "select_entries")?).csr(condition);
        let launch = launch.reads(x.values()).writes(out.view().values()).size(n_rows).size(n_cols);
        // SAFETY: all have as many rows and columns, and each column is once in a row.
        unsafe { launch.launch(Blocks::of(n_rows, THREADS as usize / 32, THREADS)) }
    });
}

/// By a row_sparse condition.
pub fn row_sparse_dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    condition: RowSparseView<'_, T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    y: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, *x.shape())?;
        let words = words(T::TYPE.name(), "u32");
        let launch =
            Launch::new(gpu, gpu.kernel(&unit(&words), "select_elements")?).rows(condition);
        let launch = launch.size(condition.shape().row_size()).reads(x.values()).reads(y.values());
        let launch = launch.writes(out).size(out.len());
        // SAFETY: all have the same shape.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    });
}

fn words(real: &'static str, id: &'static str) -> [(&'static str, Word); 2] {
    [("REAL", Word::Name(real)), ("ID", Word::Name(id))]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/select/select.cu", text: include_str!("select.cu"), words }
}

/// Visits the unit.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", "u32")));
}
