//! Joined arrays on a GPU.

use super::cpu::joined;
use crate::device::cuda::Cuda;
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView, Shape};
use crate::kernels::cuda::csr_rows::{self, Source};
use crate::kernels::cuda::row_lists::{self, Place, Stored, Values};
use crate::kernels::cuda::{CudaContext, GpuFloat, moved};
use crate::kernels::strided::Strided;
use sparse_core::shapes::place_of;

/// Of dense arrays.
pub fn dense_dense<'a, T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    lhs: DenseView<'a, T, Cuda>,
    rhs: DenseView<'a, T, Cuda>,
    axis: i64,
    context: &mut CudaContext,
) {
    let axis = place_of(axis, lhs.shape().rank()).unwrap_or(0);
    join(out, (lhs, lhs.shape()), (rhs, rhs.shape()), axis, context);
}

/// Two dense arrays, under these shapes, along an axis.
pub(in crate::kernels) fn join<'a, T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    (lhs, left): (DenseView<'a, T, Cuda>, &Shape),
    (rhs, right): (DenseView<'a, T, Cuda>, &Shape),
    axis: usize,
    context: &mut CudaContext,
) {
    let [first, second] = places(&left[..axis], &left[axis..], &right[axis..]);
    moved::placed(out, joined(left, right, axis), &[(lhs, first), (rhs, second)], context);
}

/// Where runs of both lie that come in turn, each of the extents from the axis on.
fn places(before: &[usize], left: &[usize], right: &[usize]) -> [Strided; 2] {
    let [times, first, second] = [before, left, right].map(|of| of.iter().product::<usize>());
    let place = |start, run| Strided::at(start).axis(times, (first + second) as isize).axis(run, 1);
    [place(0, first), place(first, second)]
}

/// Of csr matrices, by rows or by columns.
pub fn csr_csr<'a, T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    lhs: CsrView<'a, T, Cuda>,
    rhs: CsrView<'a, T, Cuda>,
    axis: i64,
    context: &mut CudaContext,
) {
    let by_rows = place_of(axis, 2) == Some(0);
    let shape = match by_rows {
        true => [lhs.n_rows() + rhs.n_rows(), lhs.n_cols()],
        false => [lhs.n_rows(), lhs.n_cols() + rhs.n_cols()],
    };
    csr_rows::make(out, shape, Source::joined(lhs, rhs, by_rows), context);
}

/// Of row_sparse arrays: along the first axis the rows of both; along another one the rows that either stores.
pub fn row_sparse_row_sparse<'a, T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    lhs: RowSparseView<'a, T, Cuda>,
    rhs: RowSparseView<'a, T, Cuda>,
    axis: i64,
    context: &mut CudaContext,
) {
    let (left, right) = (lhs.shape(), rhs.shape());
    let axis = place_of(axis, left.rank()).unwrap_or(0);
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
        Place { of: lhs, positions: row_lists::all(n_rows), along: first },
        Place { of: rhs, positions: after, along: second },
    ];
    let stored = Stored::Either(lhs, rhs, shift);
    row_lists::make(out, joined(left, right, axis), stored, Values::Placed(&places), context);
}
