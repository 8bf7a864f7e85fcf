//! Sums on the CPU.

use crate::formats::{ColumnId, CsrView, Dense, DenseView, MAX_RANK, RowSparseView, Shape};
use crate::kernels::{Context, scalar};
use crate::with_column_ids;
use sparse_core::element::Float;
use sparse_core::shapes::place_of;

/// Sums of a dense array.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    axis: Option<i64>,
    keepdims: bool,
    context: &mut Context,
) {
    reduce_dense(out, x, axis, keepdims, false, context);
}

/// Sums of a csr matrix.
pub fn csr<T: Float>(
    out: &mut Dense<T>,
    x: CsrView<'_, T>,
    axis: Option<i64>,
    keepdims: bool,
    context: &mut Context,
) {
    reduce_csr(out, x, axis, keepdims, false, context);
}

/// Sums of a row_sparse array.
pub fn row_sparse<T: Float>(
    out: &mut Dense<T>,
    x: RowSparseView<'_, T>,
    axis: Option<i64>,
    keepdims: bool,
    context: &mut Context,
) {
    reduce_row_sparse(out, x, axis, keepdims, false, context);
}

/// The reduced axis in the middle: how many blocks, elements summed, and elements of each.
struct Split {
    outer: usize,
    summed: usize,
    inner: usize,
}

fn split(shape: &[usize], axis: Option<usize>) -> Split {
    let product = |dims: &[usize]| dims.iter().product();
    match axis {
        None => Split { outer: 1, summed: product(shape), inner: 1 },
        Some(axis) => Split {
            outer: product(&shape[..axis]),
            summed: shape[axis],
            inner: product(&shape[axis + 1..]),
        },
    }
}

/// The axis, none if it is not given, and the shape of the result.
fn reduced(shape: &Shape, axis: Option<i64>, keepdims: bool) -> (Option<usize>, Shape) {
    let axis = axis.and_then(|axis| place_of(axis, shape.rank()));
    let (mut dims, mut rank) = ([1; MAX_RANK], 0);
    for (place, &dim) in shape.iter().enumerate() {
        let gone = axis.is_none_or(|axis| axis == place);
        if !gone || keepdims {
            dims[rank] = if gone { 1 } else { dim };
            rank += 1;
        }
    }
    (axis, Shape::new(&dims[..rank]))
}

/// What sums are divided by.
fn divisor(summed: usize, mean: bool) -> f64 {
    if mean { summed as f64 } else { 1.0 }
}

/// Sums, or means, of a dense array.
pub(crate) fn reduce_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    axis: Option<i64>,
    keepdims: bool,
    mean: bool,
    context: &mut Context,
) {
    let (axis, shape) = reduced(x.shape(), axis, keepdims);
    out.reset_for_overwrite(shape);
    let split = split(x.shape(), axis);
    let divisor = divisor(split.summed, mean);
    reduce_block(out.values_mut(), x.values(), &split, divisor, &mut context.sums);
}

/// Sums of `outer` blocks of `summed` runs of `inner` elements.
fn reduce_block<T: Float>(
    out: &mut [T],
    x: &[T],
    split: &Split,
    divisor: f64,
    sums: &mut Vec<f64>,
) {
    let Split { outer, summed, inner } = *split;
    if inner == 1 {
        for (block, out) in out.iter_mut().enumerate() {
            *out = T::of(scalar::sum(&x[block * summed..(block + 1) * summed]) / divisor);
        }
        return;
    }
    for block in 0..outer {
        sums.clear();
        sums.resize(inner, 0.0);
        for run in block * summed..(block + 1) * summed {
            add(sums, &x[run * inner..(run + 1) * inner]);
        }
        write(&mut out[block * inner..(block + 1) * inner], sums, divisor);
    }
}

fn add<T: Float>(sums: &mut [f64], values: &[T]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += value.as_f64();
    }
}

fn write<T: Float>(out: &mut [T], sums: &[f64], divisor: f64) {
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = T::of(sum / divisor);
    }
}

/// Sums, or means, of a csr matrix.
pub(crate) fn reduce_csr<T: Float>(
    out: &mut Dense<T>,
    x: CsrView<'_, T>,
    axis: Option<i64>,
    keepdims: bool,
    mean: bool,
    context: &mut Context,
) {
    let shape = Shape::from([x.n_rows(), x.n_cols()]);
    let (axis, result) = reduced(&shape, axis, keepdims);
    out.reset_for_overwrite(result);
    let divisor = divisor(split(&shape, axis).summed, mean);
    let rows =
        || x.starts().iter().zip(x.ends()).map(|(&start, &end)| start as usize..end as usize);
    let out = out.values_mut();
    match axis {
        None => {
            let total: f64 = rows().map(|row| scalar::sum(&x.values()[row])).sum();
            write(out, &[total], divisor);
        }
        Some(0) => {
            let sums = &mut context.sums;
            sums.clear();
            sums.resize(x.n_cols(), 0.0);
            with_column_ids!(x.columns(), |ids| {
                for row in rows() {
                    for (id, value) in ids[row.clone()].iter().zip(&x.values()[row]) {
                        sums[id.at()] += value.as_f64();
                    }
                }
            });
            write(out, sums, divisor);
        }
        Some(_) => {
            for (out, row) in out.iter_mut().zip(rows()) {
                *out = T::of(scalar::sum(&x.values()[row]) / divisor);
            }
        }
    }
}

/// Sums, or means, of a row_sparse array.
pub(crate) fn reduce_row_sparse<T: Float>(
    out: &mut Dense<T>,
    x: RowSparseView<'_, T>,
    axis: Option<i64>,
    keepdims: bool,
    mean: bool,
    context: &mut Context,
) {
    let (axis, result) = reduced(x.shape(), axis, keepdims);
    let divisor = divisor(split(x.shape(), axis).summed, mean);
    let row_size = x.shape().row_size();
    match axis {
        None => {
            out.reset_for_overwrite(result);
            write(out.values_mut(), &[scalar::sum(x.values())], divisor);
        }
        Some(0) => {
            out.reset_for_overwrite(result);
            let sums = &mut context.sums;
            sums.clear();
            sums.resize(row_size, 0.0);
            for row in x.values().chunks_exact(row_size.max(1)) {
                add(sums, row);
            }
            write(out.values_mut(), sums, divisor);
        }
        Some(axis) => {
            out.reset(result);
            // The mean of no elements, where the axis has none.
            out.fill(T::of(0.0 / divisor));
            let split = split(&x.shape()[1..], Some(axis - 1));
            let out_size = split.outer * split.inner;
            for (id, row) in x.iter_rows() {
                let out = &mut out.values_mut()[id * out_size..(id + 1) * out_size];
                reduce_block(out, row, &split, divisor, &mut context.sums);
            }
        }
    }
}
