//! Rows added up by id on the CPU.

use crate::formats::{Dense, DenseView, IdsView, RowSparse, Shape};
use crate::kernels::Context;
use crate::kernels::features::add_scaled;
use sparse_core::element::Float;

/// The ids that occur, ascending, and for each the sum of its rows in the order of the batch.
pub fn dense_ids_like<T: Float>(
    out: &mut RowSparse<T>,
    grad: DenseView<'_, T>,
    ids: IdsView<'_>,
    like: Shape,
    context: &mut Context,
) {
    let (occurring, width) = (&mut context.ids, like.row_size());
    out.rebuild(like, |rows, values| {
        occurring.begin(like.n_rows());
        ids.iter().for_each(|id| occurring.insert(id));
        occurring.finish(|id| rows.push(id as u64));
        values.resize(rows.len() * width, T::zero());
        add_up(values, grad, ids, width, |id| occurring.rank(id));
    });
}

/// The same as a table of all rows.
pub fn dense_ids_like_into_dense<T: Float>(
    out: &mut Dense<T>,
    grad: DenseView<'_, T>,
    ids: IdsView<'_>,
    like: Shape,
    _context: &mut Context,
) {
    out.reset(like);
    add_up(out.values_mut(), grad, ids, like.row_size(), |id| id);
}

fn add_up<T: Float>(
    out: &mut [T],
    grad: DenseView<'_, T>,
    ids: IdsView<'_>,
    width: usize,
    place: impl Fn(usize) -> usize,
) {
    for (row, id) in grad.values().chunks_exact(width.max(1)).zip(ids.iter()) {
        let start = place(id) * width;
        add_scaled(&mut out[start..start + width], row, T::one());
    }
}
