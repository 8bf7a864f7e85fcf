//! The second-order term of a factorization machine on the CPU.

use crate::formats::{CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::Context;
use crate::kernels::features::{Entries, Table};
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

/// Σ x_i v_i over the entries of a row, for each column of `v`; gives the sum of the squares of all terms.
pub(in crate::kernels) fn sum_rows<T: Float>(
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
