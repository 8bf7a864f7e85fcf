//! Ids as rows with a single 1, on the CPU. An id that is not below the depth (only a model can
//! compute one) gives a row of zeros.

use crate::formats::{ColumnId, Csr, Dense, IdsView, with_id_type};
use crate::kernels::Context;
use sparse_core::element::Float;

/// As csr.
pub fn ids<T: Float>(out: &mut Csr<T>, ids: IdsView<'_>, depth: i64, _context: &mut Context) {
    let depth = usize::try_from(depth).unwrap_or(0);
    with_id_type!(depth, |I| out.rebuild::<I, _>(depth, |parts| {
        for id in ids.iter() {
            if id < depth {
                parts.push(I::from_index(id), T::one());
            }
            parts.finish_row();
        }
    }));
}

/// As dense.
pub fn ids_into_dense<T: Float>(
    out: &mut Dense<T>,
    ids: IdsView<'_>,
    depth: i64,
    _context: &mut Context,
) {
    let depth = usize::try_from(depth).unwrap_or(0);
    out.reset([ids.len(), depth]);
    for (row, id) in out.values_mut().chunks_exact_mut(depth.max(1)).zip(ids.iter()) {
        if let Some(element) = row.get_mut(id) {
            *element = T::one();
        }
    }
}
