//! Rows of a table on the CPU.

use crate::formats::{Dense, DenseView, IdsView, MAX_RANK, RowSparseView, Shape};
use crate::kernels::Context;
use crate::kernels::features::Table;
use sparse_core::element::Float;

/// Rows of a dense table.
///
/// # Panics
///
/// If the result would have more axes than an array can have.
pub fn ids_dense<T: Float>(
    out: &mut Dense<T>,
    ids: IdsView<'_>,
    weight: DenseView<'_, T>,
    _context: &mut Context,
) {
    rows(out, ids, weight.shape(), weight);
}

/// Rows of a row_sparse table; one that is not stored is zero.
///
/// # Panics
///
/// If the result would have more axes than an array can have.
pub fn ids_row_sparse<T: Float>(
    out: &mut Dense<T>,
    ids: IdsView<'_>,
    weight: RowSparseView<'_, T>,
    _context: &mut Context,
) {
    rows(out, ids, weight.shape(), weight);
}

fn rows<T: Float>(out: &mut Dense<T>, ids: IdsView<'_>, shape: &Shape, table: impl Table<T>) {
    let (mut extents, rank) = ([0; MAX_RANK], ids.shape().rank());
    let row = &shape[1..];
    extents[..rank].copy_from_slice(ids.shape());
    extents[rank..rank + row.len()].copy_from_slice(row);
    out.reset_for_overwrite(Shape::new(&extents[..rank + row.len()]));
    let rows = out.values_mut().chunks_exact_mut(table.width().max(1));
    for (out, id) in rows.zip(ids.iter()) {
        match table.stored(id) {
            Some(row) => out.copy_from_slice(row),
            None => out.fill(T::zero()),
        }
    }
}
