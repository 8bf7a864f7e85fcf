//! Transposition on a GPU.

use crate::device::cuda::{Blocks, Cuda, Launch, Unit, Word};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{Csr, CsrView, Dense, DenseView, fits_u32};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::layout;

const THREADS: u32 = 256;

/// Of a dense matrix.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let transposed = layout::in_order(x.shape(), &[1, 0]);
    layout::cuda::moved_dense(out, x, transposed, context);
}

/// Of a csr matrix: its entries in the order of their columns. O(nnz · bits of a column id / 4).
pub fn csr<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, occurrences, .. } = context;
    gpu.attempt(out, |out| {
        occurrences.find(gpu, x)?;
        let (n, n_runs, width) = (x.values().len(), occurrences.columns().len(), x.n_cols());
        out.make_row_pointers(gpu, width)?;
        let (indptr, rows, values) = out.make_entries(gpu, x.n_rows(), n)?;
        let id = if fits_u32(x.n_rows()) { "u32" } else { "u64" };
        let words = words(T::TYPE.name(), id);
        let unit = unit(&words);
        let launch = Launch::new(gpu, gpu.kernel(&unit, "pointers_of_columns")?);
        let launch = launch.reads(occurrences.columns()).reads(occurrences.runs()).size(n_runs);
        let launch = launch.size(n).writes(indptr).size(width);
        // SAFETY: there is a row pointer for each column and one more; runs are of the columns that
        // occur.
        unsafe { launch.launch(Blocks::of(width + 1, THREADS as usize, THREADS)) }?;
        let launch = Launch::new(gpu, gpu.kernel(&unit, "entries_by_column")?);
        let launch = launch.reads(occurrences.entries()).reads(occurrences.rows());
        let launch = launch.reads(x.values()).writes_columns(rows).writes(values).size(n);
        // SAFETY: the numbers of the entries are those of `x`, each once.
        unsafe { launch.launch(Blocks::of(n, THREADS as usize, THREADS)) }
    });
}

fn words(real: &'static str, id: &'static str) -> [(&'static str, Word); 2] {
    [("REAL", Word::Name(real)), ("ID", Word::Name(id))]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/transpose/transpose.cu", text: include_str!("transpose.cu"), words }
}

/// Visits the unit.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", "u32")));
}
