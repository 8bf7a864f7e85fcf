//! Sums to a smaller shape on the CPU.

use crate::formats::{
    ColumnId, Csr, CsrView, Dense, DenseView, RowIdsView, RowSparse, RowSparseView, Shape,
};
use crate::kernels::broadcast::{Walk, strides};
use crate::kernels::{Context, converted};
use crate::with_column_ids;
use sparse_core::element::Float;

/// Dense to a smaller shape.
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    like: DenseView<'_, T>,
    context: &mut Context,
) {
    reduce_dense(out, x, *like.shape(), context);
}

/// Dense to the shape of a csr matrix.
pub fn dense_csr<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    like: CsrView<'_, T>,
    context: &mut Context,
) {
    reduce_dense(out, x, [like.n_rows(), like.n_cols()].into(), context);
}

/// Dense to the shape of a row_sparse array.
pub fn dense_row_sparse<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    like: RowSparseView<'_, T>,
    context: &mut Context,
) {
    reduce_dense(out, x, *like.shape(), context);
}

/// Csr to a smaller dense shape.
pub fn csr_dense<T: Float>(
    out: &mut Dense<T>,
    x: CsrView<'_, T>,
    like: DenseView<'_, T>,
    context: &mut Context,
) {
    let shape = Shape::from([x.n_rows(), x.n_cols()]);
    if shape == *like.shape() {
        return converted(out.assign_csr(x));
    }
    let [row_step, column_step, ..] = strides(like.shape(), &shape);
    sum_to(out, *like.shape(), context, |sums| {
        with_column_ids!(x.columns(), |ids| {
            for (row, (&start, &end)) in x.starts().iter().zip(x.ends()).enumerate() {
                let entries = start as usize..end as usize;
                for (id, value) in ids[entries.clone()].iter().zip(&x.values()[entries]) {
                    sums[row * row_step + id.at() * column_step] += value.as_f64();
                }
            }
        });
    });
}

/// Csr to a csr of the same shape: a copy.
pub fn csr_csr<T: Float>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    _like: CsrView<'_, T>,
    _context: &mut Context,
) {
    out.assign_csr(x);
}

/// Csr to a row_sparse of the same shape: a copy, as csr.
pub fn csr_row_sparse<T: Float>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    _like: RowSparseView<'_, T>,
    _context: &mut Context,
) {
    out.assign_csr(x);
}

/// Row_sparse to a smaller dense shape.
pub fn row_sparse_dense<T: Float>(
    out: &mut Dense<T>,
    x: RowSparseView<'_, T>,
    like: DenseView<'_, T>,
    context: &mut Context,
) {
    if x.shape() == like.shape() {
        return converted(out.assign_row_sparse(x));
    }
    let row_step = strides(like.shape(), x.shape())[0];
    // A row of x is summed to what is left of `like` without the axis of the rows.
    let row_shape = Shape::new(&x.shape()[1..]);
    let like_row = if like.shape().rank() == x.shape().rank() {
        Shape::new(&like.shape()[1..])
    } else {
        *like.shape()
    };
    sum_to(out, *like.shape(), context, |sums| match x.indices() {
        RowIdsView::All => {
            let table = DenseView::table(*x.shape(), x.values());
            add_dense(sums, table, like.shape());
        }
        RowIdsView::Listed(_) => {
            for (id, row) in x.iter_rows() {
                let row = DenseView::table(row_shape, row);
                add_dense(&mut sums[id * row_step..], row, &like_row);
            }
        }
    });
}

/// Row_sparse to a row_sparse of the same shape: a copy.
pub fn row_sparse_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    _like: RowSparseView<'_, T>,
    _context: &mut Context,
) {
    out.assign_row_sparse(x);
}

/// Row_sparse to a csr of the same shape: a copy, as row_sparse.
pub fn row_sparse_csr<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    _like: CsrView<'_, T>,
    _context: &mut Context,
) {
    out.assign_row_sparse(x);
}

fn reduce_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    shape: Shape,
    context: &mut Context,
) {
    if *x.shape() == shape {
        return out.assign_dense(x);
    }
    sum_to(out, shape, context, |sums| add_dense(sums, x, &shape));
}

/// Lets `accumulate` add to sums of a shape, and writes them.
fn sum_to<T: Float>(
    out: &mut Dense<T>,
    shape: Shape,
    context: &mut Context,
    accumulate: impl FnOnce(&mut [f64]),
) {
    out.reset_for_overwrite(shape);
    let sums = &mut context.sums;
    sums.clear();
    sums.resize(out.values().len(), 0.0);
    accumulate(sums);
    for (out, &sum) in out.values_mut().iter_mut().zip(sums.iter()) {
        *out = T::of(sum);
    }
}

/// Adds each element to the sum at its place in a smaller shape.
fn add_dense<T: Float>(sums: &mut [f64], x: DenseView<'_, T>, like: &Shape) {
    let walk = Walk::new(x.shape(), [like]);
    let run = walk.run();
    walk.for_each_run(|start, [place]| {
        let values = &x.values()[start..start + run];
        if walk.moves(0) {
            for (sum, value) in sums[place..place + run].iter_mut().zip(values) {
                *sum += value.as_f64();
            }
        } else {
            sums[place] += crate::kernels::scalar::sum(values);
        }
    });
}
