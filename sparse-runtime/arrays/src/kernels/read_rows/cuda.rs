//! Rows that columns name, on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{CsrView, DenseView, RowSparse, RowSparseView};
use crate::kernels::cuda::row_lists::Stored;
use crate::kernels::cuda::{CudaContext, GpuFloat, Rows};
use crate::kernels::lookup::Lookup;
use crate::kernels::take;
use sparse_core::element::Factor;

/// Those of a dense array.
pub fn dense_csr<T: GpuFloat, V: Factor<T>>(
    out: &mut RowSparse<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    by: CsrView<'_, V, Cuda>,
    context: &mut CudaContext,
) {
    row_sparse_csr(out, RowSparseView::all_on_gpu(x), by, context);
}

/// Those of a row_sparse array: a row that it does not store is left out.
pub fn row_sparse_csr<T: GpuFloat, V: Factor<T>>(
    out: &mut RowSparse<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    by: CsrView<'_, V, Cuda>,
    context: &mut CudaContext,
) {
    let lookup = Lookup::new(x.shape(), 0, false, false);
    let CudaContext { gpu, occurrences, places, list, .. } = context;
    gpu.attempt(out, |out| {
        occurrences.find(gpu, by)?;
        places.assign(gpu, occurrences.columns(), "the columns of a csr")?;
        Stored::Listed(places.as_slice(), x).find(lookup.extent, list, occurrences, gpu)?;
        let rows = occurrences.columns();
        let (values, _) = out.make_room(gpu, *x.shape(), rows)?;
        let listed = DenseView::listed_on_gpu(rows).into();
        take::cuda::gather(gpu, values, x, listed, lookup)
    });
}
