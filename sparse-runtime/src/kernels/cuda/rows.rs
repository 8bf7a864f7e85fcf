//! Rows of a table on a GPU, read and written by number.

use super::{CudaContext, GpuFloat};
use crate::device::cuda::{Blocks, Cuda, Launch, Unit, Word};
use crate::formats::{Dense, RowIdsView, RowSparseView};

const THREADS: u32 = 256;

/// A row_sparse array as dense: what it does not store is 0. O(size of the result).
pub fn scatter<T: GpuFloat>(
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
        let words = [("REAL", Word::Name(T::TYPE.name()))];
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "scatter_rows")?);
        let launch = launch.reads(rows).reads(x.values()).writes(table);
        let launch = launch.size(x.shape().row_size()).size(x.values().len());
        // SAFETY: row ids are below the number of rows, each once, and there is a row of values for each.
        unsafe { launch.launch(Blocks::of(x.values().len(), THREADS as usize, THREADS)) }
    });
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/cuda/rows.cu", text: include_str!("rows.cu"), words }
}

/// Visits these units.
pub(super) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&[("REAL", Word::Name("f32"))]));
}
