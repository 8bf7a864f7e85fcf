//! Repetition to a larger shape on the CPU.

use crate::formats::{CsrView, Dense, DenseView, MAX_RANK, RowSparse, RowSparseView, Shape};
use crate::kernels::Context;
use crate::kernels::broadcast::Walk;
use crate::kernels::reduce::Over;
use sparse_core::element::Float;
use sparse_core::ir::Axes;

/// A dense array repeated to the shape of a dense one.
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    like: DenseView<'_, T>,
    axis: Axes,
    exclude: bool,
    mean: bool,
    _context: &mut Context,
) {
    repeat(out, x, *like.shape(), Over { axis, keepdims: false, exclude }, mean);
}

/// A dense array repeated to the shape of a csr one.
pub fn dense_csr<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    like: CsrView<'_, T>,
    axis: Axes,
    exclude: bool,
    mean: bool,
    _context: &mut Context,
) {
    repeat(
        out,
        x,
        [like.n_rows(), like.n_cols()].into(),
        Over { axis, keepdims: false, exclude },
        mean,
    );
}

/// A dense array repeated to the shape of a row_sparse one.
pub fn dense_row_sparse<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    like: RowSparseView<'_, T>,
    axis: Axes,
    exclude: bool,
    mean: bool,
    _context: &mut Context,
) {
    repeat(out, x, *like.shape(), Over { axis, keepdims: false, exclude }, mean);
}

/// A number repeated to the shape of a dense array.
pub fn scalar_dense<T: Float>(
    out: &mut Dense<T>,
    x: T,
    like: DenseView<'_, T>,
    _axis: Axes,
    _exclude: bool,
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
    _axis: Axes,
    _exclude: bool,
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
    _axis: Axes,
    _exclude: bool,
    mean: bool,
    _context: &mut Context,
) {
    fill(out, x, *like.shape(), mean);
}

/// A row_sparse array repeated to the shape of a dense one: its rows, repeated.
pub fn row_sparse_dense<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    like: DenseView<'_, T>,
    axis: Axes,
    exclude: bool,
    mean: bool,
    _context: &mut Context,
) {
    repeat_rows(out, x, *like.shape(), Over { axis, keepdims: false, exclude }, mean);
}

/// A row_sparse array repeated to the shape of another: its rows, repeated.
pub fn row_sparse_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    like: RowSparseView<'_, T>,
    axis: Axes,
    exclude: bool,
    mean: bool,
    _context: &mut Context,
) {
    repeat_rows(out, x, *like.shape(), Over { axis, keepdims: false, exclude }, mean);
}

/// Repeats the stored rows. Where other axes become rows, every row is stored if anything is.
fn repeat_rows<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    shape: Shape,
    over: Over,
    mean: bool,
) {
    let source = with_axes(x.shape(), &shape, over);
    let share: T = share(shape.size(), x.shape().size(), mean);
    if (source.rank(), source.n_rows()) == (shape.rank(), shape.n_rows())
        && source.n_rows() == x.shape().n_rows()
    {
        let walk = Walk::new(&Shape::new(&shape[1..]), [&Shape::new(&source[1..])]);
        return out.rebuild(shape, |ids, values| {
            for (id, row) in x.iter_rows() {
                ids.push(id as u64);
                walk.for_each_run(|_, [position]| {
                    if walk.moves(0) {
                        let run = &row[position..position + walk.run()];
                        values.extend(run.iter().map(|x| *x * share));
                    } else {
                        values.resize(values.len() + walk.run(), row[position] * share);
                    }
                });
            }
        });
    }
    let row_size = x.shape().row_size().max(1);
    let stored = |position: usize| {
        x.row(position / row_size).map_or(T::zero(), |row| row[position % row_size] * share)
    };
    let walk = Walk::new(&shape, [&source]);
    let step = usize::from(walk.moves(0));
    out.rebuild(shape, |ids, values| {
        if x.n_stored() > 0 {
            ids.extend(0..shape.n_rows() as u64);
            values.resize(shape.size(), T::zero());
            walk.for_each_run(|start, [first]| {
                for (offset, out) in values[start..start + walk.run()].iter_mut().enumerate() {
                    *out = stored(first + offset * step);
                }
            });
        }
    });
}

fn fill<T: Float>(out: &mut Dense<T>, x: T, shape: Shape, mean: bool) {
    out.reset_for_overwrite(shape);
    out.fill(x * share(shape.size(), 1, mean));
}

fn repeat<T: Float>(out: &mut Dense<T>, x: DenseView<'_, T>, shape: Shape, over: Over, mean: bool) {
    out.reset_for_overwrite(shape);
    let source = with_axes(x.shape(), &shape, over);
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
pub(in crate::kernels) fn share<T: Float>(target: usize, source: usize, mean: bool) -> T {
    if mean { T::of(source as f64 / target as f64) } else { T::one() }
}

/// The shape with the reduced axes put back as 1, unless they were kept.
pub(in crate::kernels) fn with_axes(source: &Shape, target: &Shape, over: Over) -> Shape {
    let rank = target.rank();
    let kept = (0..rank).filter(|place| !over.reduces(*place, rank)).count();
    if kept != source.rank() || source.rank() == rank {
        return *source;
    }
    let (mut dims, mut next) = ([1; MAX_RANK], 0);
    for (place, dim) in dims[..rank].iter_mut().enumerate() {
        if !over.reduces(place, rank) {
            *dim = source[next];
            next += 1;
        }
    }
    Shape::new(&dims[..rank])
}
