//! Fully connected layers on the CPU.

use crate::formats::{CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::{Context, dot};
use sparse_core::element::{Factor, Float};

/// Dense by dense.
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    weight: DenseView<'_, T>,
    context: &mut Context,
) {
    dot::cpu::dense_dense(out, x, weight, false, true, context);
}

/// Csr by dense.
pub fn csr_dense<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    x: CsrView<'_, V>,
    weight: DenseView<'_, T>,
    context: &mut Context,
) {
    dot::cpu::csr_dense(out, x, weight, true, context);
}

/// Dense by row_sparse: a unit whose row is not stored gives zero.
pub fn dense_row_sparse<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    weight: RowSparseView<'_, T>,
    context: &mut Context,
) {
    dot::cpu::dense_row_sparse_transposed(out, x, weight, false, context);
}

/// Csr by row_sparse, likewise.
pub fn csr_row_sparse<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    x: CsrView<'_, V>,
    weight: RowSparseView<'_, T>,
    context: &mut Context,
) {
    dot::cpu::csr_row_sparse_transposed(out, x, weight, context);
}

/// Dense by dense, with a bias.
pub fn dense_dense_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    weight: DenseView<'_, T>,
    bias: DenseView<'_, T>,
    context: &mut Context,
) {
    dense_dense(out, x, weight, context);
    add_to_rows(out, bias);
}

/// Csr by dense, with a bias.
pub fn csr_dense_dense<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    x: CsrView<'_, V>,
    weight: DenseView<'_, T>,
    bias: DenseView<'_, T>,
    context: &mut Context,
) {
    csr_dense(out, x, weight, context);
    add_to_rows(out, bias);
}

/// Dense by row_sparse, with a bias.
pub fn dense_row_sparse_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    weight: RowSparseView<'_, T>,
    bias: DenseView<'_, T>,
    context: &mut Context,
) {
    dense_row_sparse(out, x, weight, context);
    add_to_rows(out, bias);
}

/// Csr by row_sparse, with a bias.
pub fn csr_row_sparse_dense<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    x: CsrView<'_, V>,
    weight: RowSparseView<'_, T>,
    bias: DenseView<'_, T>,
    context: &mut Context,
) {
    csr_row_sparse(out, x, weight, context);
    add_to_rows(out, bias);
}

fn add_to_rows<T: Float>(out: &mut Dense<T>, bias: DenseView<'_, T>) {
    for row in out.values_mut().chunks_exact_mut(bias.values().len().max(1)) {
        row.iter_mut()
            .zip(bias.values())
            .for_each(|(out, &bias)| *out = T::narrow(out.widen() + bias.widen()));
    }
}
