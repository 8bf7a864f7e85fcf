//! Elements by their positions on the CPU. An id beyond the extent (only a model can compute one) gives NaN, of a csr nothing.

use crate::formats::{
    ColumnId, ColumnIdsView, Csr, CsrView, Dense, DenseView, IdsView, MAX_RANK, RowSparseView,
    Shape, with_id_type,
};
use crate::kernels::Context;
use crate::kernels::lookup::Lookup;
use crate::with_column_ids;
use sparse_core::element::Float;

/// Of a dense array.
pub fn dense_ids<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    ids: IdsView<'_>,
    axis: i64,
    clip: bool,
    wrap: bool,
    _context: &mut Context,
) {
    let lookup = Lookup::new(x.shape(), axis, clip, wrap);
    gather(out, x.shape(), &ids, lookup, |outer, place| {
        x.values().get((outer * lookup.extent + place) * lookup.inner..)
    });
}

/// Rows of a csr matrix.
pub fn csr_ids_by_rows<T: Float>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    ids: IdsView<'_>,
    axis: i64,
    clip: bool,
    wrap: bool,
    _context: &mut Context,
) {
    let shape = Shape::from([x.n_rows(), x.n_cols()]);
    let lookup = Lookup::new(&shape, axis, clip, wrap);
    with_id_type!(x.n_cols(), |I| out.rebuild::<I, _>(x.n_cols(), |parts| {
        for index in 0..ids.len() {
            let row = lookup.place(&ids, index).and_then(|row| x.row(row));
            let (columns, values) = row.unwrap_or((ColumnIdsView::default(), &[]));
            with_column_ids!(columns, |ids| {
                parts.columns.extend(ids.iter().map(|id| I::from_index(id.at())));
            });
            parts.values.extend_from_slice(values);
            parts.finish_row();
        }
    }));
}

/// Rows of a row_sparse array; one that is not stored is zero.
pub fn row_sparse_ids_by_rows<T: Float>(
    out: &mut Dense<T>,
    x: RowSparseView<'_, T>,
    ids: IdsView<'_>,
    axis: i64,
    clip: bool,
    wrap: bool,
    _context: &mut Context,
) {
    let lookup = Lookup::new(x.shape(), axis, clip, wrap);
    gather(out, x.shape(), &ids, lookup, |_, place| Some(x.row(place).unwrap_or(&[])));
}

/// Copies what `source` finds at a position along the axis; what it does not have is zero.
fn gather<'a, T: Float>(
    out: &mut Dense<T>,
    shape: &Shape,
    ids: &IdsView<'_>,
    lookup: Lookup,
    source: impl Fn(usize, usize) -> Option<&'a [T]>,
) {
    out.reset_for_overwrite(taken(shape, ids.shape(), lookup.axis));
    let mut rows = out.values_mut().chunks_exact_mut(lookup.inner.max(1));
    for outer in 0..lookup.outer {
        for index in 0..ids.len() {
            let Some(row) = rows.next() else { return };
            match lookup.place(ids, index).and_then(|place| source(outer, place)) {
                Some(values) => match values.get(..row.len()) {
                    Some(values) => row.copy_from_slice(values),
                    None => row.fill(T::zero()),
                },
                None => row.fill(T::nan()),
            }
        }
    }
}

/// The shape with an axis replaced by those of the ids.
pub(super) fn taken(shape: &Shape, ids: &Shape, axis: usize) -> Shape {
    let mut dims = [0; MAX_RANK];
    let (before, after) = (&shape[..axis], shape.get(axis + 1..).unwrap_or(&[]));
    let all = before.iter().chain(ids.iter()).chain(after);
    dims.iter_mut().zip(all).for_each(|(dim, extent)| *dim = *extent);
    Shape::new(&dims[..before.len() + ids.rank() + after.len()])
}
