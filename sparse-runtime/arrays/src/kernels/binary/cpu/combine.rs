//! Stored elements combined with a dense operand: the loops that are compiled for each function.

use crate::formats::{ColumnId, Csr, Dense, DenseView, RowSparse, Shape};
use crate::kernels::Context;
use crate::kernels::broadcast::{Walk, broadcast, moves_in_one_run, strides};
use crate::with_column_ids;
use sparse_core::element::Float;

/// Dense with dense of any shapes that broadcast.
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    lhs: DenseView<'_, T>,
    rhs: DenseView<'_, T>,
    f: impl Fn(T, T) -> T + Sync + Copy,
    _context: &mut Context,
) {
    let shape = broadcast(lhs.shape(), rhs.shape());
    out.reset_for_overwrite(shape);
    let moves = [lhs.shape(), rhs.shape()].map(|array| moves_in_one_run(&shape, array));
    let (lhs, rhs, out) =
        ((lhs.values(), lhs.shape()), (rhs.values(), rhs.shape()), out.values_mut());
    if let [Some(x), Some(y)] = moves
        && !out.is_empty()
    {
        return one_run(out, (lhs.0, x), (rhs.0, y), f);
    }
    let walk = Walk::new(&shape, [lhs.1, rhs.1]);
    let run = walk.run();
    walk.for_each_run(|start, [x, y]| {
        let out = &mut out[start..start + run];
        one_run(out, (&lhs.0[x..], walk.moves(0)), (&rhs.0[y..], walk.moves(1)), f);
    });
}

/// Elements of two arrays in turn, of each those that follow or always the first.
#[inline(always)]
fn one_run<T: Float>(
    out: &mut [T],
    (lhs, lhs_moves): (&[T], bool),
    (rhs, rhs_moves): (&[T], bool),
    f: impl Fn(T, T) -> T,
) {
    let run = out.len();
    match (lhs_moves, rhs_moves) {
        (true, true) => {
            for ((out, &x), &y) in out.iter_mut().zip(&lhs[..run]).zip(&rhs[..run]) {
                *out = f(x, y);
            }
        }
        (true, false) => {
            let y = rhs[0];
            for (out, &x) in out.iter_mut().zip(&lhs[..run]) {
                *out = f(x, y);
            }
        }
        (false, true) => {
            let x = lhs[0];
            for (out, &y) in out.iter_mut().zip(&rhs[..run]) {
                *out = f(x, y);
            }
        }
        (false, false) => out.fill(f(lhs[0], rhs[0])),
    }
}

/// Each element with the one of `dense`, which broadcasts to its place.
pub(super) fn dense_with_dense<T: Float>(
    out: &mut Dense<T>,
    dense: DenseView<'_, T>,
    f: impl Fn(T, T) -> T + Copy,
) {
    let shape = *out.shape();
    slice_with_slice(out.values_mut(), &shape, dense.values(), dense.shape(), f);
}

/// Each stored element with the one of `dense`.
pub(super) fn csr_with_dense<T: Float>(
    out: &mut Csr<T>,
    dense: DenseView<'_, T>,
    f: impl Fn(T, T) -> T + Copy,
) {
    let shape = Shape::from([out.n_rows(), out.n_cols()]);
    let [row_step, column_step, ..] = strides(dense.shape(), &shape);
    let dense = dense.values();
    let (indptr, columns, values) = out.parts_mut();
    with_column_ids!(columns, |ids| {
        for (row, bounds) in indptr.windows(2).enumerate() {
            let entries = bounds[0] as usize..bounds[1] as usize;
            let first = row * row_step;
            if column_step == 0 {
                let y = dense.get(first).copied().unwrap_or_default();
                values[entries].iter_mut().for_each(|value| *value = f(*value, y));
            } else {
                for (id, value) in ids[entries.clone()].iter().zip(&mut values[entries]) {
                    *value = f(*value, dense[first + id.at()]);
                }
            }
        }
    });
}

/// Each element of the stored rows with the one of `dense`.
pub(super) fn row_sparse_with_dense<T: Float>(
    out: &mut RowSparse<T>,
    dense: DenseView<'_, T>,
    f: impl Fn(T, T) -> T + Copy,
) {
    let shape = *out.shape();
    let row_shape = Shape::new(&shape[1..]);
    let row_size = shape.row_size();
    let row_step = strides(dense.shape(), &shape)[0];
    let dense_row = if dense.shape().rank() == shape.rank() {
        Shape::new(&dense.shape()[1..])
    } else {
        *dense.shape()
    };
    let (ids, values) = out.parts_mut();
    for (&id, row) in ids.iter().zip(values.chunks_exact_mut(row_size.max(1))) {
        let dense = &dense.values()[id as usize * row_step..];
        slice_with_slice(row, &row_shape, dense, &dense_row, f);
    }
}

#[inline]
fn slice_with_slice<T: Float>(
    out: &mut [T],
    shape: &Shape,
    dense: &[T],
    dense_shape: &Shape,
    f: impl Fn(T, T) -> T + Copy,
) {
    let one_run = |out: &mut [T], dense: &[T], moves: bool| match (moves, dense.first()) {
        (true, _) => out.iter_mut().zip(dense).for_each(|(out, &y)| *out = f(*out, y)),
        (false, Some(&y)) => out.iter_mut().for_each(|out| *out = f(*out, y)),
        (false, None) => {}
    };
    if let Some(moves) = moves_in_one_run(shape, dense_shape) {
        return one_run(out, dense, moves);
    }
    let walk = Walk::new(shape, [dense_shape]);
    let run = walk.run();
    walk.for_each_run(|start, [y]| {
        one_run(&mut out[start..start + run], &dense[y..], walk.moves(0));
    });
}
