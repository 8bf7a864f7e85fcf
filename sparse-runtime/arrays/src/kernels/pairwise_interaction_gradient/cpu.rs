//! The gradient of pairwise interactions with respect to their table, on the CPU.

use crate::formats::{CsrView, Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::Context;
use crate::kernels::context::in_sums;
use crate::kernels::features::{Entries, Table, number_columns};
use crate::kernels::pairwise_interaction::cpu::sum_rows;
use sparse_core::element::{Factor, Float};

/// The columns that occur in a csr, ascending, and their rows.
pub fn csr_dense_dense<T: Float, V: Factor<T>>(
    out: &mut RowSparse<T>,
    x: CsrView<'_, V>,
    v: DenseView<'_, T>,
    grad: DenseView<'_, T>,
    context: &mut Context,
) {
    by_columns(out, x, v, grad, context);
}

/// The same for a row_sparse table.
pub fn csr_row_sparse_dense<T: Float, V: Factor<T>>(
    out: &mut RowSparse<T>,
    x: CsrView<'_, V>,
    v: RowSparseView<'_, T>,
    grad: DenseView<'_, T>,
    context: &mut Context,
) {
    by_columns(out, x, v, grad, context);
}

/// As a table of all rows.
pub fn csr_dense_dense_into_dense<T: Float, V: Factor<T>>(
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
pub fn csr_row_sparse_dense_into_dense<T: Float, V: Factor<T>>(
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

/// Of a dense matrix.
pub fn dense_dense_dense<T: Float>(
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
