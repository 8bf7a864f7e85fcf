//! Joined arrays on a GPU.

use super::Join;
use crate::device::cuda::Cuda;
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::cuda::csr_rows::{self, Source};
use crate::kernels::cuda::row_lists::{self, PlacedRows, Stored, Values};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::layout;
use crate::kernels::strided::Strided;

/// Of dense arrays.
pub(in crate::kernels) fn join_dense_dense<'a, T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    lhs: DenseView<'a, T, Cuda>,
    rhs: DenseView<'a, T, Cuda>,
    join: Join,
    context: &mut CudaContext,
) {
    let Join { left, right, axis } = join;
    let [first, second] = places(&left[..axis], &left[axis..], &right[axis..]);
    layout::cuda::placed(out, join.shape(), &[(lhs, first), (rhs, second)], context);
}

/// Where runs of both lie that come in turn, each of the extents from the axis on.
fn places(before: &[usize], left: &[usize], right: &[usize]) -> [Strided; 2] {
    let [times, first, second] = [before, left, right].map(|of| of.iter().product::<usize>());
    let place = |start, run| Strided::at(start).axis(times, (first + second) as isize).axis(run, 1);
    [place(0, first), place(first, second)]
}

/// Of csr matrices, by rows or by columns.
pub(in crate::kernels) fn join_csr_csr<'a, T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    lhs: CsrView<'a, T, Cuda>,
    rhs: CsrView<'a, T, Cuda>,
    join: Join,
    context: &mut CudaContext,
) {
    let shape = join.shape();
    let source = Source::joined(lhs, rhs, join.axis == 0);
    csr_rows::make(out, [shape.n_rows(), shape.row_size()], source, context);
}

/// Of row_sparse arrays: along the first axis the rows of both; along another one the rows that
/// either stores.
pub(in crate::kernels) fn join_row_sparse_row_sparse<'a, T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    lhs: RowSparseView<'a, T, Cuda>,
    rhs: RowSparseView<'a, T, Cuda>,
    join: Join,
    context: &mut CudaContext,
) {
    let Join { left, right, axis } = join;
    let (n_rows, others) = (left.n_rows(), right.n_rows());
    let (shift, after, places) = match axis {
        0 => {
            let whole = Strided::at(0).axis(left.row_size(), 1);
            (n_rows, row_lists::from(n_rows, others), [whole; 2])
        }
        _ => (0, row_lists::all(others), places(&left[1..axis], &left[axis..], &right[axis..])),
    };
    let [first, second] = places;
    let places = [
        PlacedRows { of: lhs, positions: row_lists::all(n_rows), along: first },
        PlacedRows { of: rhs, positions: after, along: second },
    ];
    let stored = Stored::Either(lhs, rhs, shift);
    row_lists::make(out, join.shape(), stored, Values::Placed(&places), context);
}
