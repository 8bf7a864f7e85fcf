//! Repetition to a larger shape on the CPU.

use crate::formats::{CsrView, Dense, DenseView, MAX_RANK, RowSparseView, Shape};
use crate::kernels::Context;
use crate::kernels::broadcast::Walk;
use sparse_core::element::Float;
use sparse_core::shapes::place_of;

/// A dense array repeated to the shape of a dense one.
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    like: DenseView<'_, T>,
    axis: Option<i64>,
    mean: bool,
    _context: &mut Context,
) {
    repeat(out, x, *like.shape(), axis, mean);
}

/// A dense array repeated to the shape of a csr one.
pub fn dense_csr<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    like: CsrView<'_, T>,
    axis: Option<i64>,
    mean: bool,
    _context: &mut Context,
) {
    repeat(out, x, [like.n_rows(), like.n_cols()].into(), axis, mean);
}

/// A dense array repeated to the shape of a row_sparse one.
pub fn dense_row_sparse<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    like: RowSparseView<'_, T>,
    axis: Option<i64>,
    mean: bool,
    _context: &mut Context,
) {
    repeat(out, x, *like.shape(), axis, mean);
}

/// A number repeated to the shape of a dense array.
pub fn scalar_dense<T: Float>(
    out: &mut Dense<T>,
    x: T,
    like: DenseView<'_, T>,
    _axis: Option<i64>,
    mean: bool,
    _context: &mut Context,
) {
    fill(out, x, *like.shape(), mean);
}

/// A number repeated to the shape of a csr matrix.
pub fn scalar_csr<T: Float>(
    out: &mut Dense<T>,
    x: T,
    like: CsrView<'_, T>,
    _axis: Option<i64>,
    mean: bool,
    _context: &mut Context,
) {
    fill(out, x, [like.n_rows(), like.n_cols()].into(), mean);
}

/// A number repeated to the shape of a row_sparse array.
pub fn scalar_row_sparse<T: Float>(
    out: &mut Dense<T>,
    x: T,
    like: RowSparseView<'_, T>,
    _axis: Option<i64>,
    mean: bool,
    _context: &mut Context,
) {
    fill(out, x, *like.shape(), mean);
}

fn fill<T: Float>(out: &mut Dense<T>, x: T, shape: Shape, mean: bool) {
    out.reset_for_overwrite(shape);
    out.fill(x * share(shape.size(), 1, mean));
}

fn repeat<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    shape: Shape,
    axis: Option<i64>,
    mean: bool,
) {
    out.reset_for_overwrite(shape);
    let source = with_axis(x.shape(), &shape, axis);
    let share = share(shape.size(), x.shape().size(), mean);
    let walk = Walk::new(&shape, [&source]);
    let run = walk.run();
    let out = out.values_mut();
    walk.for_each_run(|start, [position]| {
        let out = &mut out[start..start + run];
        if walk.moves(0) {
            for (out, &x) in out.iter_mut().zip(&x.values()[position..position + run]) {
                *out = x * share;
            }
        } else {
            out.fill(x.values()[position] * share);
        }
    });
}

/// The part of an element that each of its repetitions has.
fn share<T: Float>(target: usize, source: usize, mean: bool) -> T {
    match mean {
        true => T::of(source as f64 / target as f64),
        false => T::one(),
    }
}

/// The shape with the reduced axis put back as 1, unless it was kept.
fn with_axis(source: &Shape, target: &Shape, axis: Option<i64>) -> Shape {
    let axis = axis.and_then(|axis| place_of(axis, target.rank()));
    match axis {
        Some(axis) if source.rank() + 1 == target.rank() => {
            let mut dims = [1; MAX_RANK];
            dims[..axis].copy_from_slice(&source[..axis]);
            dims[axis + 1..=source.rank()].copy_from_slice(&source[axis..]);
            Shape::new(&dims[..=source.rank()])
        }
        _ => *source,
    }
}
