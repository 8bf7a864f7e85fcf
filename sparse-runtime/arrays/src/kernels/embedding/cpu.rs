//! Rows of a table on the CPU: what `take` gives along the first axis.

use crate::formats::{Dense, DenseView, IdsView, RowSparseView};
use crate::kernels::{Context, take};
use sparse_core::element::Float;

/// Rows of a dense table.
pub fn ids_dense<T: Float>(
    out: &mut Dense<T>,
    ids: IdsView<'_>,
    weight: DenseView<'_, T>,
    context: &mut Context,
) {
    take::cpu::dense_ids(out, weight, ids, 0, false, false, context);
}

/// Rows of a row_sparse table; one that is not stored is zero.
pub fn ids_row_sparse<T: Float>(
    out: &mut Dense<T>,
    ids: IdsView<'_>,
    weight: RowSparseView<'_, T>,
    context: &mut Context,
) {
    take::cpu::row_sparse_ids_by_rows(out, weight, ids, 0, false, false, context);
}
