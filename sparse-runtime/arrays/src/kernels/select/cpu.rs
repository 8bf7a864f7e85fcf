//! One of two arrays by a condition, on the CPU.

use crate::formats::{ColumnId, CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::Context;
use crate::with_column_ids;
use sparse_core::element::Float;

/// By a dense condition.
pub fn dense_dense_dense<T: Float>(
    out: &mut Dense<T>,
    condition: DenseView<'_, T>,
    x: DenseView<'_, T>,
    y: DenseView<'_, T>,
    _context: &mut Context,
) {
    out.assign_dense(y);
    let chosen = condition.values().iter().zip(x.values());
    for (out, (condition, &x)) in out.values_mut().iter_mut().zip(chosen) {
        if *condition != T::zero() {
            *out = x;
        }
    }
}

/// By a csr condition.
pub fn csr_dense_dense<T: Float>(
    out: &mut Dense<T>,
    condition: CsrView<'_, T>,
    x: DenseView<'_, T>,
    y: DenseView<'_, T>,
    _context: &mut Context,
) {
    out.assign_dense(y);
    let (n_cols, out) = (condition.n_cols(), out.values_mut());
    with_column_ids!(condition.columns(), |ids| {
        for (row, (&start, &end)) in condition.starts().iter().zip(condition.ends()).enumerate() {
            let entries = start as usize..end as usize;
            for (id, condition) in ids[entries.clone()].iter().zip(&condition.values()[entries]) {
                if *condition != T::zero() {
                    let place = row * n_cols + id.at();
                    out[place] = x.values()[place];
                }
            }
        }
    });
}

/// By a row_sparse condition.
pub fn row_sparse_dense_dense<T: Float>(
    out: &mut Dense<T>,
    condition: RowSparseView<'_, T>,
    x: DenseView<'_, T>,
    y: DenseView<'_, T>,
    _context: &mut Context,
) {
    out.assign_dense(y);
    let out = out.values_mut();
    for (id, row) in condition.iter_rows() {
        let start = id * row.len();
        for (place, condition) in row.iter().enumerate() {
            if *condition != T::zero() {
                out[start + place] = x.values()[start + place];
            }
        }
    }
}
