//! The gradient of `take` on the CPU. Ids beyond the extent have no place to add to.

#![allow(clippy::too_many_arguments, reason = "the attributes of the row, one by one")]

use crate::formats::{
    ColumnId, Csr, CsrView, Dense, DenseView, IdsView, RowSparse, Shape, with_id_type,
};
use crate::kernels::Context;
use crate::kernels::context::in_sums;
use crate::kernels::lookup::Lookup;
use crate::with_column_ids;
use sparse_core::element::Float;

/// Rows: those taken are stored.
pub fn dense_ids_like_by_rows<T: Float>(
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

/// Rows, as dense.
pub fn dense_ids_like_by_rows_into_dense<T: Float>(
    out: &mut Dense<T>,
    grad: DenseView<'_, T>,
    ids: IdsView<'_>,
    like: Shape,
    axis: i64,
    clip: bool,
    wrap: bool,
    context: &mut Context,
) {
    dense_ids_like(out, grad, ids, like, axis, clip, wrap, context);
}

/// Along any axis.
pub fn dense_ids_like<T: Float>(
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

/// Rows of a csr: what is at one place is added up in the order of the ids.
pub fn csr_ids_like_by_rows<T: Float>(
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
