//! Positions of extremes on the CPU.

use super::Extreme;
use crate::formats::{ColumnId, CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::Context;
use crate::with_column_ids;
use sparse_core::element::Float;

/// A value and where it is.
#[derive(Clone, Copy)]
struct Best {
    value: f64,
    position: usize,
}

/// Whether a value is more extreme than another, or as extreme and earlier. The first NaN is the
/// most extreme.
fn beats(new: Best, old: Best, largest: bool) -> bool {
    if new.value.is_nan() || old.value.is_nan() {
        return new.value.is_nan() && (!old.value.is_nan() || new.position < old.position);
    }
    let further = if largest { new.value > old.value } else { new.value < old.value };
    further || (new.value == old.value && new.position < old.position)
}

fn join(best: &mut Option<Best>, value: f64, position: usize, largest: bool) {
    let new = Best { value, position };
    if best.is_none_or(|old| beats(new, old, largest)) {
        *best = Some(new);
    }
}

fn position(best: Option<Best>) -> u64 {
    best.map_or(0, |best| best.position as u64)
}

/// Of a dense array.
pub(in crate::kernels) fn position_dense<T: Float>(
    out: &mut Dense<u64>,
    x: DenseView<'_, T>,
    extreme: Extreme,
    _context: &mut Context,
) {
    let Extreme { result, axis, largest } = extreme;
    out.reset_for_overwrite(result);
    positions(out.values_mut(), x.values(), x.shape(), axis, largest);
}

fn positions<T: Float>(
    out: &mut [u64],
    values: &[T],
    shape: &[usize],
    axis: Option<usize>,
    largest: bool,
) {
    let (extent, inner) = match axis {
        None => (values.len(), 1),
        Some(axis) => (shape[axis], shape[axis + 1..].iter().product()),
    };
    for (index, out) in out.iter_mut().enumerate() {
        let start = index / inner * extent * inner + index % inner;
        let mut best = None;
        for place in 0..extent {
            join(&mut best, values[start + place * inner].as_f64(), place, largest);
        }
        *out = position(best);
    }
}

/// Of a csr matrix.
pub(in crate::kernels) fn position_csr<T: Float>(
    out: &mut Dense<u64>,
    x: CsrView<'_, T>,
    extreme: Extreme,
    context: &mut Context,
) {
    let Extreme { result, axis, largest } = extreme;
    out.reset_for_overwrite(result);
    let n_cols = x.n_cols();
    let rows = || x.starts().iter().zip(x.ends()).map(|(&from, &to)| from as usize..to as usize);
    with_column_ids!(x.columns(), |ids| {
        // The best of a row, and the first zero that it does not store.
        let of_row = |row: std::ops::Range<usize>| {
            let (mut best, mut missing) = (None, 0);
            for (id, value) in ids[row.clone()].iter().zip(&x.values()[row]) {
                missing += usize::from(id.at() == missing);
                join(&mut best, value.as_f64(), id.at(), largest);
            }
            if missing < n_cols {
                join(&mut best, 0.0, missing, largest);
            }
            best
        };
        match axis {
            Some(1) => {
                for (out, row) in out.values_mut().iter_mut().zip(rows()) {
                    *out = position(of_row(row));
                }
            }
            None => {
                let mut best = None;
                for (row, entries) in rows().enumerate() {
                    if let Some(of_row) = of_row(entries) {
                        join(&mut best, of_row.value, row * n_cols + of_row.position, largest);
                    }
                }
                out.values_mut()[0] = position(best);
            }
            Some(_) => {
                // For each column the best value, its row, and the first row that does not store
                // it.
                let (values, order) = (&mut context.sums, &mut context.order);
                values.clear();
                values.resize(n_cols, f64::NAN);
                order.clear();
                order.resize(n_cols, (usize::MAX, 0));
                for (row, entries) in rows().enumerate() {
                    for (id, value) in ids[entries.clone()].iter().zip(&x.values()[entries]) {
                        let (at, missing) = &mut order[id.at()];
                        *missing += usize::from(*missing == row);
                        let known = (*at != usize::MAX)
                            .then_some(Best { value: values[id.at()], position: *at });
                        let mut best = known;
                        join(&mut best, value.as_f64(), row, largest);
                        if let Some(best) = best {
                            (values[id.at()], *at) = (best.value, best.position);
                        }
                    }
                }
                for ((out, &value), &(at, missing)) in
                    out.values_mut().iter_mut().zip(&*values).zip(&*order)
                {
                    let mut best = (at != usize::MAX).then_some(Best { value, position: at });
                    if missing < x.n_rows() {
                        join(&mut best, 0.0, missing, largest);
                    }
                    *out = position(best);
                }
            }
        }
    });
}

/// Of a row_sparse array.
pub(in crate::kernels) fn position_row_sparse<T: Float>(
    out: &mut Dense<u64>,
    x: RowSparseView<'_, T>,
    extreme: Extreme,
    _context: &mut Context,
) {
    let Extreme { result, axis, largest } = extreme;
    out.reset(result);
    let row_size = x.shape().row_size();
    // The first row that is not stored.
    let missing = x.iter_rows().enumerate().find(|(at, (id, _))| at != id);
    let missing = missing.map_or(x.n_stored(), |(at, _)| at);
    let has_zeros = missing < x.shape().n_rows();
    match axis {
        Some(0) => {
            for (column, out) in out.values_mut().iter_mut().enumerate() {
                let mut best = None;
                x.iter_rows()
                    .for_each(|(id, row)| join(&mut best, row[column].as_f64(), id, largest));
                if has_zeros {
                    join(&mut best, 0.0, missing, largest);
                }
                *out = position(best);
            }
        }
        None => {
            let mut best = None;
            for (id, row) in x.iter_rows() {
                for (column, value) in row.iter().enumerate() {
                    join(&mut best, value.as_f64(), id * row_size + column, largest);
                }
            }
            if has_zeros && row_size > 0 {
                join(&mut best, 0.0, missing * row_size, largest);
            }
            out.values_mut()[0] = position(best);
        }
        Some(axis) => {
            let size = row_size / x.shape()[axis].max(1);
            for (id, row) in x.iter_rows() {
                let out = &mut out.values_mut()[id * size..(id + 1) * size];
                positions(out, row, &x.shape()[1..], Some(axis - 1), largest);
            }
        }
    }
}
