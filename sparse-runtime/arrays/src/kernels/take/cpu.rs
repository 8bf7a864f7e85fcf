//! Elements by their positions on the CPU. An id beyond the extent (only a model can compute one)
//! gives NaN, of a csr nothing.

use crate::formats::{
    ColumnId, ColumnIdsView, Csr, CsrView, Dense, DenseView, IdsView, MAX_RANK, RowSparse,
    RowSparseView, Shape, with_id_type,
};
use crate::kernels::Context;
use crate::kernels::context::in_sums;
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

/// Rows of a dense table: what `take` gives along the first axis.
pub fn embedding_ids_dense<T: Float>(
    out: &mut Dense<T>,
    ids: IdsView<'_>,
    weight: DenseView<'_, T>,
    context: &mut Context,
) {
    dense_ids(out, weight, ids, 0, false, false, context);
}

/// Rows of a row_sparse table; one that is not stored is zero.
pub fn embedding_ids_row_sparse<T: Float>(
    out: &mut Dense<T>,
    ids: IdsView<'_>,
    weight: RowSparseView<'_, T>,
    context: &mut Context,
) {
    row_sparse_ids_by_rows(out, weight, ids, 0, false, false, context);
}

/// The gradient along the rows: those taken are stored. Ids beyond the extent have no place to add
/// to.
pub fn gradient_dense_ids_like_by_rows<T: Float>(
    out: &mut RowSparse<T>,
    grad: DenseView<'_, T>,
    ids: IdsView<'_>,
    like: Shape,
    axis: i64,
    clip: bool,
    wrap: bool,
    context: &mut Context,
) {
    let lookup = Lookup::new(&like, axis, clip, wrap);
    let rows = &mut context.ids;
    rows.begin(lookup.extent);
    (0..ids.len()).filter_map(|at| lookup.place(&ids, at)).for_each(|row| rows.insert(row));
    out.rebuild(like, |stored, values| {
        rows.finish(|row| stored.push(row as u64));
        values.resize(stored.len() * lookup.inner, T::zero());
        in_sums(values, &mut context.sums, |sums| {
            scatter(sums, grad, &ids, lookup, |row| rows.rank(row));
        });
    });
}

/// The gradient along the rows, as dense.
pub fn gradient_dense_ids_like_by_rows_into_dense<T: Float>(
    out: &mut Dense<T>,
    grad: DenseView<'_, T>,
    ids: IdsView<'_>,
    like: Shape,
    axis: i64,
    clip: bool,
    wrap: bool,
    context: &mut Context,
) {
    gradient_dense_ids_like(out, grad, ids, like, axis, clip, wrap, context);
}

/// The gradient along any axis.
pub fn gradient_dense_ids_like<T: Float>(
    out: &mut Dense<T>,
    grad: DenseView<'_, T>,
    ids: IdsView<'_>,
    like: Shape,
    axis: i64,
    clip: bool,
    wrap: bool,
    context: &mut Context,
) {
    out.reset(like);
    in_sums(out.values_mut(), &mut context.sums, |sums| {
        scatter(sums, grad, &ids, Lookup::new(&like, axis, clip, wrap), |place| place);
    });
}

/// The gradient along the rows of a csr: what is at one place is added up in the order of the ids.
pub fn gradient_csr_ids_like_by_rows<T: Float>(
    out: &mut Csr<T>,
    grad: CsrView<'_, T>,
    ids: IdsView<'_>,
    like: Shape,
    axis: i64,
    clip: bool,
    wrap: bool,
    context: &mut Context,
) {
    let lookup = Lookup::new(&like, axis, clip, wrap);
    let (order, entries) = (&mut context.order, &mut context.entries);
    order.clear();
    order.extend((0..ids.len()).filter_map(|at| Some((lookup.place(&ids, at)?, at))));
    order.sort_unstable();
    let n_cols = like.row_size();
    with_id_type!(n_cols, |I| out.rebuild::<I, _>(n_cols, |parts| {
        let mut next = 0;
        for row in 0..lookup.extent {
            entries.clear();
            while let Some((_, from)) = order.get(next).filter(|(place, _)| *place == row) {
                let range = grad.starts()[*from] as usize..grad.ends()[*from] as usize;
                with_column_ids!(grad.columns(), |columns| {
                    let values = grad.values()[range.clone()].iter();
                    let columns = columns[range].iter().zip(values);
                    entries.extend(columns.map(|(id, value)| (id.at(), next, value.as_f64())));
                });
                next += 1;
            }
            entries.sort_unstable_by_key(|(column, from, _)| (*column, *from));
            for same in entries.chunk_by(|a, b| a.0 == b.0) {
                let sum: f64 = same.iter().map(|(_, _, value)| value).sum();
                parts.push(I::from_index(same[0].0), T::of(sum));
            }
            parts.finish_row();
        }
    }));
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

/// Adds each row of `grad` to where its element was taken from.
fn scatter<T: Float>(
    sums: &mut [f64],
    grad: DenseView<'_, T>,
    ids: &IdsView<'_>,
    lookup: Lookup,
    row_of: impl Fn(usize) -> usize,
) {
    if lookup.inner == 0 {
        return;
    }
    let mut rows = grad.values().chunks_exact(lookup.inner);
    for outer in 0..lookup.outer {
        for index in 0..ids.len() {
            let Some(row) = rows.next() else { return };
            if let Some(place) = lookup.place(ids, index) {
                let start = (outer * lookup.extent + row_of(place)) * lookup.inner;
                let sums = &mut sums[start..start + lookup.inner];
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value.as_f64());
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
