//! Reductions on the CPU.

use super::{Combine, Over};
use crate::formats::{
    ColumnId, CsrView, Dense, DenseView, MAX_RANK, RowSparse, RowSparseView, Shape,
};
use crate::kernels::Context;
use crate::kernels::broadcast::Walk;
use crate::with_column_ids;
use sparse_core::element::Float;

/// Of a dense array.
pub fn dense<T: Float, C: Combine>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    over: Over,
    combine: C,
    map: impl Fn(f64) -> f64 + Copy,
    finish: impl Fn(f64, f64) -> f64 + Copy,
    context: &mut Context,
) {
    let n = count(x.shape(), over);
    out.reset_for_overwrite(reduced(x.shape(), over, over.keepdims));
    let sums = &mut context.sums;
    collect(sums, x.values(), x.shape(), &reduced(x.shape(), over, true), combine, map);
    write(out.values_mut(), sums, |s| finish(s, n));
}

/// Of a csr matrix.
pub fn csr<T: Float, C: Combine>(
    out: &mut Dense<T>,
    x: CsrView<'_, T>,
    over: Over,
    combine: C,
    map: impl Fn(f64) -> f64 + Copy,
    finish: impl Fn(f64, f64) -> f64 + Copy,
    context: &mut Context,
) {
    let shape = Shape::from([x.n_rows(), x.n_cols()]);
    let n = count(&shape, over);
    out.reset_for_overwrite(reduced(&shape, over, over.keepdims));
    let rows =
        || x.starts().iter().zip(x.ends()).map(|(&start, &end)| start as usize..end as usize);
    let joined = |s: f64, all_stored: bool| {
        if C::SEES_ZEROS && !all_stored { C::join(s, map(0.0)) } else { s }
    };
    let out = out.values_mut();
    match (over.reduces(0, 2), over.reduces(1, 2)) {
        (true, true) => {
            let each = rows().map(|row| fold(&x.values()[row], combine, map));
            let total = each.fold(C::START, C::join);
            let stored: usize = rows().map(|row| row.len()).sum();
            out[0] = T::of(finish(joined(total, stored == shape.size()), n));
        }
        (true, false) => {
            // Sums, then how many rows store each column.
            let sums = &mut context.sums;
            sums.clear();
            sums.resize(x.n_cols(), C::START);
            sums.resize(if C::SEES_ZEROS { 2 * x.n_cols() } else { x.n_cols() }, 0.0);
            let (sums, counts) = sums.split_at_mut(x.n_cols());
            with_column_ids!(x.columns(), |ids| {
                for row in rows() {
                    for (id, value) in ids[row.clone()].iter().zip(&x.values()[row]) {
                        sums[id.at()] = C::join(sums[id.at()], map(value.as_f64()));
                        if C::SEES_ZEROS {
                            counts[id.at()] += 1.0;
                        }
                    }
                }
            });
            for (column, (out, &sum)) in out.iter_mut().zip(&*sums).enumerate() {
                let all = counts.get(column).is_none_or(|count| *count == x.n_rows() as f64);
                *out = T::of(finish(joined(sum, all), n));
            }
        }
        (false, true) => {
            for (out, row) in out.iter_mut().zip(rows()) {
                let sum = fold(&x.values()[row.clone()], combine, map);
                *out = T::of(finish(joined(sum, row.len() == x.n_cols()), n));
            }
        }
        (false, false) => {
            out.fill(T::of(finish(map(0.0), n)));
            with_column_ids!(x.columns(), |ids| {
                for (row, range) in rows().enumerate() {
                    for (id, value) in ids[range.clone()].iter().zip(&x.values()[range]) {
                        out[row * x.n_cols() + id.at()] = T::of(finish(map(value.as_f64()), n));
                    }
                }
            });
        }
    }
}

/// Of a row_sparse array, or of a dense one by the rows that it stores.
fn row_sparse_rows<T: Float, C: Combine>(
    sums: &mut Vec<f64>,
    x: RowSparseView<'_, T>,
    over: Over,
    combine: C,
    map: impl Fn(f64) -> f64 + Copy,
) {
    let stored = with_rows(x.shape(), x.n_stored());
    collect(sums, x.values(), &stored, &reduced(&stored, over, true), combine, map);
}

/// Of a row_sparse array.
pub fn row_sparse<T: Float, C: Combine>(
    out: &mut Dense<T>,
    x: RowSparseView<'_, T>,
    over: Over,
    combine: C,
    map: impl Fn(f64) -> f64 + Copy,
    finish: impl Fn(f64, f64) -> f64 + Copy,
    context: &mut Context,
) {
    let n = count(x.shape(), over);
    let shape = reduced(x.shape(), over, over.keepdims);
    out.reset_for_overwrite(shape);
    let sums = &mut context.sums;
    row_sparse_rows(sums, x, over, combine, map);
    if over.reduces(0, x.shape().rank()) {
        if C::SEES_ZEROS && n > 0.0 && x.n_stored() < x.shape().n_rows() {
            sums.iter_mut().for_each(|sum| *sum = C::join(*sum, map(0.0)));
        }
        return write(out.values_mut(), sums, |s| finish(s, n));
    }
    // Rows that are not stored are reductions of zeros.
    let empty = n == 0.0 || !C::SEES_ZEROS;
    let zero = T::of(finish(if empty { C::START } else { map(0.0) }, n));
    out.fill(zero);
    let size = with_rows(&reduced(x.shape(), over, true), 1).size();
    for (position, (id, _)) in x.iter_rows().enumerate() {
        let out = &mut out.values_mut()[id * size..(id + 1) * size];
        write(out, &sums[position * size..(position + 1) * size], |s| finish(s, n));
    }
}

/// Of a row_sparse array over axes other than the first: row_sparse.
pub fn row_sparse_by_rows<T: Float, C: Combine>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    over: Over,
    combine: C,
    map: impl Fn(f64) -> f64 + Copy,
    finish: impl Fn(f64, f64) -> f64 + Copy,
    context: &mut Context,
) {
    let n = count(x.shape(), over);
    let sums = &mut context.sums;
    row_sparse_rows(sums, x, over, combine, map);
    out.rebuild(reduced(x.shape(), over, over.keepdims), |ids, values| {
        ids.extend(x.iter_rows().map(|(id, _)| id as u64));
        values.extend(sums.iter().map(|&s| T::of(finish(s, n))));
    });
}

/// The shape of the result.
pub(super) fn reduced(shape: &Shape, over: Over, keepdims: bool) -> Shape {
    let (mut dims, mut rank) = ([1; MAX_RANK], 0);
    for (place, &dim) in shape.iter().enumerate() {
        let gone = over.reduces(place, shape.rank());
        if !gone || keepdims {
            dims[rank] = if gone { 1 } else { dim };
            rank += 1;
        }
    }
    Shape::new(&dims[..rank])
}

/// How many elements each result is made of.
pub(super) fn count(shape: &Shape, over: Over) -> f64 {
    let reduced = |place: &usize| over.reduces(*place, shape.rank());
    (0..shape.rank()).filter(reduced).map(|place| shape[place]).product::<usize>() as f64
}

/// A shape with another number of rows.
fn with_rows(shape: &Shape, rows: usize) -> Shape {
    let mut dims = [1; MAX_RANK];
    dims[..shape.rank()].copy_from_slice(shape);
    dims[0] = rows;
    Shape::new(&dims[..shape.rank()])
}

/// Combines the elements of each place of the result, whose reduced axes are kept as 1.
fn collect<T: Float, C: Combine>(
    sums: &mut Vec<f64>,
    values: &[T],
    shape: &Shape,
    result: &Shape,
    combine: C,
    map: impl Fn(f64) -> f64 + Copy,
) {
    sums.clear();
    sums.resize(result.size(), C::START);
    let walk = Walk::new(shape, [result]);
    let run = walk.run();
    walk.for_each_run(|start, [position]| {
        let values = &values[start..start + run];
        if walk.moves(0) {
            for (sum, value) in sums[position..position + run].iter_mut().zip(values) {
                *sum = C::join(*sum, map(value.as_f64()));
            }
        } else {
            sums[position] = C::join(sums[position], fold(values, combine, map));
        }
    });
}

/// All of a run, in an order that depends on its length only.
#[inline]
fn fold<T: Float, C: Combine>(values: &[T], _combine: C, map: impl Fn(f64) -> f64) -> f64 {
    // Lanes, so that the operations do not wait for each other.
    let mut lanes = [C::START; 8];
    let mut chunks = values.chunks_exact(8);
    for chunk in &mut chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = C::join(*lane, map(value.as_f64()));
        }
    }
    let rest = chunks.remainder().iter().map(|value| map(value.as_f64()));
    let rest = rest.fold(C::START, C::join);
    let [a, b, c, d, e, f, g, h] = lanes;
    let (left, right) =
        (C::join(C::join(a, b), C::join(c, d)), C::join(C::join(e, f), C::join(g, h)));
    C::join(C::join(left, right), rest)
}

fn write<T: Float>(out: &mut [T], sums: &[f64], finish: impl Fn(f64) -> f64) {
    for (out, &sum) in out.iter_mut().zip(sums) {
        *out = T::of(finish(sum));
    }
}
