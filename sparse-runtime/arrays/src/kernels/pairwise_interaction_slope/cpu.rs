//! The gradient of pairwise interactions with respect to what x stores, on the CPU.

use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::Context;
use crate::kernels::features::{Entries, Table};
use crate::kernels::pairwise_interaction::cpu::sum_rows;
use sparse_core::element::Float;

/// At the pattern of a csr.
pub fn csr_dense_dense<T: Float>(
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
pub fn csr_row_sparse_dense<T: Float>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    v: RowSparseView<'_, T>,
    grad: DenseView<'_, T>,
    context: &mut Context,
) {
    out.assign_csr(x);
    slopes(out.values_mut(), x, v, grad, &mut context.sums);
}

/// Of a dense matrix.
pub fn dense_dense_dense<T: Float>(
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
