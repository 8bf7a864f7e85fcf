//! The second-order term of a factorization machine on the CPU, and its gradients.

use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::Context;
use crate::kernels::context::in_sums;
use crate::kernels::features::{Entries, Table, number_columns};
use sparse_core::element::{Factor, Float};

/// Of a csr with a dense table.
pub fn csr_dense<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    x: CsrView<'_, V>,
    v: DenseView<'_, T>,
    context: &mut Context,
) {
    interact(out, x, v, context);
}

/// Of a csr with a row_sparse table; a row that is not stored is zero.
pub fn csr_row_sparse<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    x: CsrView<'_, V>,
    v: RowSparseView<'_, T>,
    context: &mut Context,
) {
    interact(out, x, v, context);
}

/// Of a dense matrix with a dense table.
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    v: DenseView<'_, T>,
    context: &mut Context,
) {
    interact(out, x, v, context);
}

fn interact<T: Float>(
    out: &mut Dense<T>,
    x: impl Entries<T>,
    v: impl Table<T>,
    context: &mut Context,
) {
    out.reset_for_overwrite([x.n_rows(), 1]);
    for (row, out) in out.values_mut().iter_mut().enumerate() {
        let squares = sum_rows(&mut context.sums, x, v, row);
        let square: f64 = context.sums.iter().map(|sum| sum * sum).sum();
        *out = T::of(0.5 * (square - squares));
    }
}

/// Σ x_i v_i over the entries of a row, for each column of `v`; gives the sum of the squares of all
/// terms.
fn sum_rows<T: Float>(
    sums: &mut Vec<f64>,
    x: impl Entries<T>,
    v: impl Table<T>,
    row: usize,
) -> f64 {
    sums.clear();
    sums.resize(v.width(), 0.0);
    let mut squares = 0.0;
    x.for_each(row, |column, value| {
        let value = value.as_f64();
        for (sum, factor) in sums.iter_mut().zip(v.stored(column).unwrap_or_default()) {
            let term = value * factor.as_f64();
            *sum += term;
            squares += term * term;
        }
    });
    squares
}

/// The gradient with respect to the table: the columns that occur in a csr, ascending, and their
/// rows.
pub fn gradient_csr_dense_dense<T: Float, V: Factor<T>>(
    out: &mut RowSparse<T>,
    x: CsrView<'_, V>,
    v: DenseView<'_, T>,
    grad: DenseView<'_, T>,
    context: &mut Context,
) {
    by_columns(out, x, v, grad, context);
}

/// The same for a row_sparse table.
pub fn gradient_csr_row_sparse_dense<T: Float, V: Factor<T>>(
    out: &mut RowSparse<T>,
    x: CsrView<'_, V>,
    v: RowSparseView<'_, T>,
    grad: DenseView<'_, T>,
    context: &mut Context,
) {
    by_columns(out, x, v, grad, context);
}

/// The gradient with respect to the table, as a table of all rows.
pub fn gradient_csr_dense_dense_into_dense<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    x: CsrView<'_, V>,
    v: DenseView<'_, T>,
    grad: DenseView<'_, T>,
    context: &mut Context,
) {
    out.reset(*v.shape());
    let Context { sums, factors, .. } = context;
    in_sums(out.values_mut(), sums, |out| {
        add_up(out, x, v, grad, factors, |column| column);
    });
}

/// The same for a row_sparse table.
pub fn gradient_csr_row_sparse_dense_into_dense<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    x: CsrView<'_, V>,
    v: RowSparseView<'_, T>,
    grad: DenseView<'_, T>,
    context: &mut Context,
) {
    out.reset(*v.shape());
    let Context { sums, factors, .. } = context;
    in_sums(out.values_mut(), sums, |out| {
        add_up(out, x, v, grad, factors, |column| column);
    });
}

/// The gradient with respect to the table, of a dense matrix.
pub fn gradient_dense_dense_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    v: DenseView<'_, T>,
    grad: DenseView<'_, T>,
    context: &mut Context,
) {
    out.reset(*v.shape());
    let Context { sums, factors, .. } = context;
    in_sums(out.values_mut(), sums, |out| {
        add_up(out, x, v, grad, factors, |column| column);
    });
}

fn by_columns<T: Float, V: Factor<T>>(
    out: &mut RowSparse<T>,
    x: CsrView<'_, V>,
    v: impl Table<T>,
    grad: DenseView<'_, T>,
    context: &mut Context,
) {
    let Context { ids: columns, sums, factors, .. } = context;
    out.rebuild([x.n_cols(), v.width()], |rows, values| {
        number_columns(columns, x, |column| rows.push(column as u64));
        values.resize(rows.len() * v.width(), T::zero());
        in_sums(values, sums, |out| {
            add_up(out, x, v, grad, factors, |column| columns.rank(column));
        });
    });
}

/// Row place(i) of `out` += grad · x_i · (Σ_j x_j v_j - x_i v_i), for each entry of each row of x.
fn add_up<T: Float>(
    out: &mut [f64],
    x: impl Entries<T>,
    v: impl Table<T>,
    grad: DenseView<'_, T>,
    sums: &mut Vec<f64>,
    place: impl Fn(usize) -> usize,
) {
    let width = v.width();
    for (row, grad) in grad.values().iter().enumerate() {
        sum_rows(sums, x, v, row);
        x.for_each(row, |column, value| {
            let start = place(column) * width;
            let out = &mut out[start..start + width];
            let (value, grad) = (value.as_f64(), grad.as_f64());
            match v.stored(column) {
                Some(factors) => {
                    for ((out, sum), factor) in out.iter_mut().zip(&*sums).zip(factors) {
                        *out += grad * value * (sum - value * factor.as_f64());
                    }
                }
                None => {
                    for (out, sum) in out.iter_mut().zip(&*sums) {
                        *out += grad * value * sum;
                    }
                }
            }
        });
    }
}

/// The gradient with respect to what a csr stores, at its pattern.
pub fn slope_csr_dense_dense<T: Float>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    v: DenseView<'_, T>,
    grad: DenseView<'_, T>,
    context: &mut Context,
) {
    out.assign_csr(x);
    slopes(out.values_mut(), x, v, grad, &mut context.sums);
}

/// The same for a row_sparse table.
pub fn slope_csr_row_sparse_dense<T: Float>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    v: RowSparseView<'_, T>,
    grad: DenseView<'_, T>,
    context: &mut Context,
) {
    out.assign_csr(x);
    slopes(out.values_mut(), x, v, grad, &mut context.sums);
}

/// The gradient with respect to a dense matrix.
pub fn slope_dense_dense_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    v: DenseView<'_, T>,
    grad: DenseView<'_, T>,
    context: &mut Context,
) {
    out.reset_for_overwrite(*x.shape());
    slopes(out.values_mut(), x, v, grad, &mut context.sums);
}

/// grad · v_i · (Σ_j x_j v_j - x_i v_i) for each entry, in the order of the entries.
fn slopes<T: Float>(
    out: &mut [T],
    x: impl Entries<T>,
    v: impl Table<T>,
    grad: DenseView<'_, T>,
    sums: &mut Vec<f64>,
) {
    let mut out = out.iter_mut();
    for (row, grad) in grad.values().iter().enumerate() {
        sum_rows(sums, x, v, row);
        x.for_each(row, |column, value| {
            let (value, factors) = (value.as_f64(), v.stored(column).unwrap_or_default());
            let terms = factors.iter().zip(&*sums).map(|(factor, sum)| {
                let factor = factor.as_f64();
                factor * (sum - value * factor)
            });
            let total: f64 = terms.sum();
            if let Some(out) = out.next() {
                *out = T::of(grad.as_f64() * total);
            }
        });
    }
}
