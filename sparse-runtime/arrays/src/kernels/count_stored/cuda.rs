//! How many elements are stored, on a GPU.

use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{CsrView, Dense, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::extremes::without;
use sparse_core::element::Stored;
use sparse_core::ir::Axes;

const THREADS: u32 = 256;

/// Of a csr matrix.
pub fn csr<V: Stored>(
    out: &mut Dense<u64, Cuda>,
    x: CsrView<'_, V, Cuda>,
    axis: Axes,
    keepdims: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    let (n_rows, n_stored) = (x.n_rows(), x.values().len());
    let (shape, axis) = without(&[n_rows, x.n_cols()].into(), axis, keepdims);
    gpu.attempt(out, |out| {
        let words = words(x.columns().type_name());
        let kernel = |name| Ok::<_, CudaError>(Launch::new(gpu, gpu.kernel(&unit(&words), name)?));
        match axis {
            None => fill(gpu, out.reset_on(gpu, shape)?, n_stored),
            Some(0) => {
                let out = out.zeros_on(gpu, shape)?;
                let launch = kernel("count_columns")?.columns(x.columns());
                // SAFETY: `out` has an element for each column.
                unsafe { launch.writes(out).size(n_stored).launch(each(n_stored)) }
            }
            Some(_) => {
                let out = out.reset_on(gpu, shape)?;
                let launch = kernel("count_rows")?.reads(x.starts()).reads(x.ends());
                // SAFETY: `out` has an element for each row.
                unsafe { launch.writes(out).size(n_rows).launch(each(n_rows)) }
            }
        }
    });
}

/// Of a row_sparse array.
pub fn row_sparse<T: GpuFloat>(
    out: &mut Dense<u64, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    axis: Axes,
    keepdims: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    let (rows, n_stored) = x.stored_on_gpu();
    let (shape, axis) = without(x.shape(), axis, keepdims);
    gpu.attempt(out, |out| match axis {
        None => fill(gpu, out.reset_on(gpu, shape)?, x.values().len()),
        Some(0) => fill(gpu, out.reset_on(gpu, shape)?, n_stored),
        Some(axis) => {
            let out = out.zeros_on(gpu, shape)?;
            let extent = x.shape()[axis];
            let of_row = x.shape().row_size() / extent.max(1);
            let n = n_stored * of_row;
            let words = words("u32");
            let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "fill_counts_of_rows")?);
            let launch = launch.reads(rows).size(of_row).size(extent).writes(out);
            // SAFETY: `out` has so many elements for each row.
            unsafe { launch.size(n).launch(each(n)) }
        }
    });
}

fn fill(gpu: &Gpu, out: CudaSlice<'_, u64>, count: usize) -> Result<(), CudaError> {
    let words = words("u32");
    let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "fill_count")?).size(count);
    // SAFETY: the size is that of `out`.
    unsafe { launch.writes(out).size(out.len()).launch(each(out.len())) }
}

fn each(n: usize) -> Blocks {
    Blocks::of(n, THREADS as usize, THREADS)
}

fn words(column: &'static str) -> [(&'static str, Word); 1] {
    [("COLUMN", Word::Name(column))]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = include_str!("count_stored.cu");
    Unit { file: "kernels/count_stored/count_stored.cu", text, words }
}

/// Visits the unit.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    for column in ["u32", "u64"] {
        visit(&unit(&words(column)));
    }
}
