//! Rows of a list on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{DenseView, IdsView, RowSparse, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, Rows};
use crate::kernels::lookup::Lookup;
use crate::kernels::take;

/// Of a dense array: the rows are stored.
pub fn dense_ids<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = &context.gpu().clone();
    let lookup = Lookup::new(x.shape(), 0, false, false);
    let CudaContext { occurrences, places, .. } = context;
    gpu.attempt(out, |out| {
        take::cuda::places(gpu, places, ids, lookup)?;
        occurrences.find_ids(gpu, places.as_slice(), lookup.extent)?;
        let rows = occurrences.columns();
        let (values, _) = out.make_room(gpu, *x.shape(), rows)?;
        let listed = DenseView::listed_on_gpu(rows).into();
        take::cuda::gather(gpu, values, RowSparseView::all_on_gpu(x), listed, lookup)
    });
}
