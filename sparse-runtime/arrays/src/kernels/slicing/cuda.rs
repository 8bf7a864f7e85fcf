//! Slices on a GPU.

use super::SlicedPart;
use crate::device::cuda::Cuda;
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::cuda::csr_rows::{self, Source};
use crate::kernels::cuda::row_lists::{self, PlacedRows, Stored, Values};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::layout;

/// The part of a dense array.
pub(in crate::kernels) fn part_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    part: SlicedPart,
    context: &mut CudaContext,
) {
    let along = part.strided(0..x.shape().rank());
    layout::cuda::moved_dense(out, x, (part.extents(), along), context);
}

/// The part of a csr matrix.
pub(in crate::kernels) fn part_csr<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    part: SlicedPart,
    context: &mut CudaContext,
) {
    let shape = part.extents();
    let shape = [shape.n_rows(), shape.row_size()];
    csr_rows::make(out, shape, Source::part(x, &part), context);
}

/// The part of a row_sparse array: rows that it does not store are not stored.
pub(in crate::kernels) fn part_row_sparse<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    part: SlicedPart,
    context: &mut CudaContext,
) {
    let (positions, along) = (part.on_gpu(), part.strided(1..x.shape().rank()));
    let place = PlacedRows { of: x, positions, along };
    let stored = Stored::OfPart(x, positions);
    row_lists::make(out, part.extents(), stored, Values::Gathered(&place), context);
}

/// Zeros, and a dense array as the part.
pub(in crate::kernels) fn place_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    part: SlicedPart,
    context: &mut CudaContext,
) {
    let along = part.strided(0..x.shape().rank());
    layout::cuda::placed(out, part.whole_shape(), &[(x, along)], context);
}

/// A csr matrix as the part of one that stores nothing else.
pub(in crate::kernels) fn place_csr<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    part: SlicedPart,
    context: &mut CudaContext,
) {
    let shape = part.whole_shape();
    let shape = [shape.n_rows(), shape.row_size()];
    csr_rows::make(out, shape, Source::placed(x, &part), context);
}

/// A row_sparse array as the part of one that stores no other rows.
pub(in crate::kernels) fn place_row_sparse<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    part: SlicedPart,
    context: &mut CudaContext,
) {
    let (positions, along) = (part.on_gpu(), part.strided(1..x.shape().rank()));
    let places = [PlacedRows { of: x, positions, along }];
    let stored = Stored::OfWhole(x, positions);
    row_lists::make(out, part.whole_shape(), stored, Values::Placed(&places), context);
}

/// A dense array as the part of a row_sparse one that stores no other rows.
pub(in crate::kernels) fn place_dense_by_rows<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    part: SlicedPart,
    context: &mut CudaContext,
) {
    place_row_sparse(out, RowSparseView::all_on_gpu(x), part, context);
}
