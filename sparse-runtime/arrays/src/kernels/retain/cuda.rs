//! Rows of a list on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{Csr, CsrView, DenseView, IdsView, RowSparse, RowSparseView, Shape};
use crate::kernels::cuda::csr_rows::{self, Source};
use crate::kernels::cuda::row_lists::Stored;
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

/// Of a csr matrix: the other rows are empty.
pub fn csr_ids<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    context: &mut CudaContext,
) {
    let shape = [x.n_rows(), x.n_cols()];
    let lookup = Lookup::new(&Shape::from(shape), 0, false, false);
    let CudaContext { gpu, occurrences, places, .. } = context;
    gpu.attempt(out, |out| {
        take::cuda::places(gpu, places, ids, lookup)?;
        occurrences.find_ids(gpu, places.as_slice(), lookup.extent)?;
        let (found, sums) = occurrences.found_and_sums();
        csr_rows::write(gpu, out, shape, Source::listed(x, found.columns), sums)
    });
}

/// Of a row_sparse array: those that it stores.
pub fn row_sparse_ids<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    context: &mut CudaContext,
) {
    let lookup = Lookup::new(x.shape(), 0, false, false);
    let CudaContext { gpu, occurrences, places, list, .. } = context;
    gpu.attempt(out, |out| {
        take::cuda::places(gpu, places, ids, lookup)?;
        Stored::Listed(places.as_slice(), x).find(lookup.extent, list, occurrences, gpu)?;
        let rows = occurrences.columns();
        let (values, _) = out.make_room(gpu, *x.shape(), rows)?;
        let listed = DenseView::listed_on_gpu(rows).into();
        take::cuda::gather(gpu, values, x, listed, lookup)
    });
}
