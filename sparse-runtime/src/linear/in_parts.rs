//! The step of a large batch on several threads, with the bits of one.
//!
//! Rows that wait for steps are settled, each by the thread whose it is, and rows of one weight are read by it; rows of data are scored
//! by whoever comes first, and their row functions are run by the calling thread in order meanwhile; then each thread updates the rows
//! that are its own.

use super::{
    LARGE, Scratch, Width, entries, is_large, prefetch_data, product, range_of, row_ahead, row_of,
    sum_of_products, with_row_loops,
};
use crate::formats::{ColumnId, CsrView};
use crate::lanes;
use crate::optimizer::{ReadRows, RowAccumulator, RowUpdater, RowWeights, UpdateKind};
use crate::row_parts::{Cuts, RowPart, in_order};
use crate::team;
use crate::with_column_ids;
use sparse_core::element::{Factor, Float, Stored};
use sparse_core::update_rules::UpdateRule;
use std::ops::Range;

/// Bytes of the weights that a batch reads, at most, where they are handed over: what is written by one thread and read by another is to be
/// in a cache until then. Of a larger batch each weight is read where it lies.
const MOST_READ: usize = 2 << 20;

/// As [`step`](super::step), of a batch whose extents were compared with those of the parameter.
pub(super) fn step<R: UpdateRule, T: Float, V: Factor<T>, W: Width, K: UpdateKind>(
    n_parts: usize,
    x: CsrView<'_, V>,
    mut rows: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    mut row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator]) -> T::Accumulator,
) -> f64 {
    let (n_rows, columns) = (x.n_rows(), width.columns());
    let Scratch { rows: row_scratch, gradients, parts, read, .. } = scratch;
    let (cuts, parts) = parts.divide(n_parts, x, columns);
    settle(x, &mut rows, columns, cuts, parts);

    let large = is_large(&rows);
    let shared = rows.shared(columns);
    let factor = shared.cursor().plain_factor();
    gradients.resize(n_rows * columns, T::zero().widen());
    let mut total = 0.0;
    let row_function = |row: usize, scores: &mut [T::Accumulator]| {
        width.with_rows(row_scratch, |gradient, saved| {
            gradient.copy_from_slice(scores);
            total += row_function(row, gradient, saved).as_f64();
            if let Some(factor) = factor {
                gradient.iter_mut().for_each(|gradient| *gradient *= factor);
            }
            scores.copy_from_slice(gradient);
        });
    };
    if columns == 1 && x.nnz() * size_of::<T::Accumulator>() <= MOST_READ {
        // A weight is asked of the thread that updates it, in whose cache it is, and comes from there with others.
        read.fill_from(x, cuts, parts, shared.weights());
        let read = &*read;
        let score = |_: &mut _, rows, scores: &mut [_]| sum(x, rows, read, scores);
        in_order(parts, gradients, columns, score, row_function);
    } else {
        let weights = shared.weights();
        let score =
            |_: &mut _, rows, scores: &mut [_]| score(x, rows, weights, width, large, scores);
        in_order(parts, gradients, columns, score, row_function);
    }

    let gradients = &*gradients;
    team::each(parts, |place, part| {
        let own = cuts.of(place, x);
        let RowPart { sums, scratch, .. } = part;
        if K::PLAIN {
            // SAFETY: the columns of `x` are rows of the parameter, of `columns` elements; each is of one part.
            return unsafe { add(own, gradients, shared.weights(), width, large, scratch) };
        }
        accumulate::<T, V, W>(own, sums, gradients, width, scratch);
        // SAFETY: as above.
        unsafe {
            match W::IN_VECTORS {
                true => lanes::wide(
                    #[inline(always)]
                    || shared.update_summed(columns, sums),
                ),
                false => shared.update_summed(columns, sums),
            }
        }
        sums.clear();
    });
    rows.finish();
    total / n_rows as f64
}

/// Settles the rows that a batch reads, of `row_size` elements, each by the thread whose part it is of.
pub(crate) fn settle<R: UpdateRule, T: Float, V: Stored, K: UpdateKind, A: Send>(
    x: CsrView<'_, V>,
    rows: &mut RowUpdater<'_, R, T, K>,
    row_size: usize,
    cuts: &Cuts,
    parts: &mut [RowPart<A>],
) {
    if !rows.settles() {
        return;
    }
    let large = is_large(rows);
    let shared = rows.shared(row_size);
    team::each(parts, |place, part| {
        let (own, first_settled) = (cuts.of(place, x), &mut part.first_settled);
        first_settled.clear();
        with_column_ids!(own.columns(), |ids| for row in 0..own.n_rows() {
            if large {
                row_ahead(own, ids, row).iter().for_each(|id| shared.prefetch(id.at()));
            }
            for id in row_of(own, ids, row).0 {
                // SAFETY: rows settle; the columns of `x` are rows of the parameter, and each is of one part.
                unsafe { shared.settle(id.at(), first_settled) };
            }
        });
    });
    for part in parts {
        rows.add_touched(&part.first_settled);
    }
}

/// The weights that the entries of a batch read, of a parameter of one column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Read<A> {
    weights: Vec<A>,
    /// Where those of each row of data begin.
    starts: Vec<usize>,
}

impl<A: Float> Read<A> {
    /// Reads them, each by the thread that has its row.
    fn fill_from<T: Float<Accumulator = A>, V: Stored>(
        &mut self,
        x: CsrView<'_, V>,
        cuts: &Cuts,
        parts: &mut [RowPart<A>],
        weights: RowWeights<'_, T>,
    ) {
        let mut nnz = 0;
        self.starts.clear();
        self.starts.extend(x.starts().iter().zip(x.ends()).map(|(start, end)| {
            nnz += (end - start) as usize;
            nnz - (end - start) as usize
        }));
        if self.weights.len() < nnz {
            self.weights.resize(nnz, A::zero());
        }
        let (out, starts) = (Out(self.weights.as_mut_ptr()), &*self.starts);
        team::each(parts, |place, _| {
            // SAFETY: there is room for every entry; each is of one part; the columns of `x` are rows of the parameter.
            unsafe { out.read(x, cuts.of(place, x), starts, weights) };
        });
    }
}

/// Where several threads write, each its own elements.
struct Out<A>(*mut A);

// SAFETY: as the method says.
unsafe impl<A: Send> Sync for Out<A> {}

impl<A> Out<A> {
    /// Reads the weights of some entries of `x`, given those of each row, to where they are among all.
    ///
    /// # Safety
    ///
    /// There is room for every entry of `x`, whose rows begin at `starts`, and no other thread reads or writes what is read or
    /// written here. Columns are rows of the parameter.
    #[inline(never)]
    unsafe fn read<T: Float<Accumulator = A>, V: Stored>(
        &self,
        x: CsrView<'_, V>,
        own: CsrView<'_, V>,
        starts: &[usize],
        weights: RowWeights<'_, T>,
    ) {
        let is_run = x.is_contiguous();
        with_column_ids!(own.columns(), |ids| for (row, start) in starts.iter().enumerate() {
            if !is_run {
                prefetch_data(own, ids, row);
            }
            let first = start + (own.starts()[row] - x.starts()[row]) as usize;
            for (place, id) in row_of(own, ids, row).0.iter().enumerate() {
                // SAFETY: promised by the caller.
                unsafe { *self.0.add(first + place) = weights.value(id.at(), 0).widen() };
            }
        });
    }
}

/// The product of some rows of data with the weights that they read.
#[inline(never)]
fn sum<A: Float, T: Float<Accumulator = A>, V: Factor<T>>(
    x: CsrView<'_, V>,
    rows: Range<usize>,
    read: &Read<A>,
    scores: &mut [A],
) {
    for (row, score) in rows.zip(scores) {
        let values = &x.values()[range_of(x, row)];
        let weights = &read.weights[read.starts[row]..][..values.len()];
        *score = sum_of_products::<T, V, A>(weights, values, |weight| *weight);
    }
}

/// The product of some rows of data with the weights.
#[inline(never)]
fn score<T: Float, V: Factor<T>, W: Width>(
    x: CsrView<'_, V>,
    rows: Range<usize>,
    weights: RowWeights<'_, T>,
    width: W,
    large: bool,
    scores: &mut [T::Accumulator],
) {
    with_row_loops!(W, x.columns(), |ids| {
        // In here, where the compiler sees it.
        let columns = width.columns();
        let weights = weights.of_size(columns);
        for (row, scores) in rows.zip(scores.chunks_exact_mut(columns.max(1))) {
            prefetch_data(x, ids, row);
            if large {
                weights.prefetch_each(row_ahead(x, ids, row));
            }
            let (ids, values) = row_of(x, ids, row);
            scores.fill(T::zero().widen());
            // SAFETY: the columns of `x` are rows of the parameter, of as many elements as there are scores.
            unsafe { product(ids, values, weights, width, scores) };
        }
    });
}

/// Adds what each row of data contributes to the rows of one thread, given its entries of these: its value times `changes` of the row
/// of data.
///
/// # Safety
///
/// The columns of `own` are rows of the parameter, of `width.columns()` elements, and no other thread reads or writes those.
#[inline(never)]
unsafe fn add<T: Float, V: Factor<T>, W: Width>(
    own: CsrView<'_, V>,
    changes: &[T::Accumulator],
    weights: RowWeights<'_, T>,
    width: W,
    large: bool,
    scratch: &mut Vec<T::Accumulator>,
) {
    with_row_loops!(W, own.columns(), |ids| {
        // In here, where the compiler sees it.
        let columns = width.columns();
        let weights = weights.of_size(columns);
        for row in 0..own.n_rows() {
            if W::IN_VECTORS && large {
                weights.prefetch_each(row_ahead(own, ids, row));
            }
            let changes = &changes[row * columns..(row + 1) * columns];
            let (ids, values) = row_of(own, ids, row);
            // A copy that no other pointer leads to stays in registers.
            width.with_rows(
                scratch,
                #[inline(always)]
                |copy, _| {
                    copy.copy_from_slice(changes);
                    for (id, value) in entries(ids, values) {
                        // SAFETY: promised by the caller.
                        unsafe { weights.add_row(id.at(), copy, |change| value.times(change)) };
                    }
                },
            );
        }
    });
}

/// Sums the gradients of the rows of one thread, given its entries of the rows of data, in the order of these.
#[inline(never)]
fn accumulate<T: Float, V: Factor<T>, W: Width>(
    own: CsrView<'_, V>,
    sums: &mut RowAccumulator<T::Accumulator>,
    gradients: &[T::Accumulator],
    width: W,
    scratch: &mut Vec<T::Accumulator>,
) {
    let (columns, large) = (width.columns(), own.n_cols() * size_of::<u32>() >= LARGE);
    with_row_loops!(W, own.columns(), |ids| for row in 0..own.n_rows() {
        if large {
            sums.prefetch_each(row_ahead(own, ids, row));
        }
        let gradient = &gradients[row * columns..(row + 1) * columns];
        let (ids, values) = row_of(own, ids, row);
        // As in `add`.
        width.with_rows(
            scratch,
            #[inline(always)]
            |copy, _| {
                copy.copy_from_slice(gradient);
                // SAFETY: the sums are for the columns of the batch, of `columns` elements.
                unsafe { sums.add_outer::<_, T, _>(entries(ids, values), copy) };
            },
        );
    });
}

#[cfg(test)]
mod tests {
    use crate::error::Result;
    use crate::formats::Csr;
    use crate::kernels::Parallel;
    use crate::linear::{Fixed, Scratch, any_rows};
    use crate::optimizer::{ParameterSpec, Updater};
    use crate::table::Table;
    use crate::with_rows;
    use sparse_core::storage::Storage;
    use sparse_core::update_rules::{AdaGrad, Ftrl, LazyUpdate, Sgd, UpdateRule};

    const COLUMNS: usize = 300;

    /// Some steps on overlapping batches, of a parameter of `K` columns; the losses, and the weights at the end.
    fn steps<R: UpdateRule, const K: usize>(
        rule: &R,
        n_parts: usize,
    ) -> Result<(Vec<f64>, Vec<f32>)> {
        let rows = (0..60usize).map(|row| {
            // Some rows have no entries, the others a column that all have.
            let n_entries = if row % 11 == 3 { 0 } else { 1 + row * 5 % 130 };
            let column = |k| if k == 0 { 0 } else { k * 2 + row % 40 };
            (0..n_entries).map(|k| (column(k), (k % 7) as f32 - 2.5)).collect::<Vec<_>>()
        });
        let x = Csr::from_rows(COLUMNS, rows)?;
        let spec = ParameterSpec::new("w", COLUMNS, K, Some(Storage::RowSparse));
        let mut updater = Updater::<R, f32>::new(rule.clone(), vec![spec])?;
        let values: Vec<f32> = (0..K * COLUMNS).map(|i| (i % 11) as f32 / 70.0).collect();
        let mut table = Table::from_values(K, &values);
        let (mut scratch, mut losses) = (Scratch::default(), Vec::new());
        for step in 0..6 {
            updater.set_learning_rate(0.01 + 0.01 * (step / 3) as f64)?;
            updater.begin_step()?;
            let x = x.view().rows(step * 8..step * 8 + 20)?;
            let row_function = |row: usize, scores: &mut [f32], _: &mut [f32]| {
                scores.iter_mut().for_each(|score| *score -= (row % 3) as f32);
                scores[0] * scores[K - 1]
            };
            with_rows!(R, f32; updater, [0 => &mut table], |[rows]| losses.push(match n_parts {
                1 => any_rows(x, rows, Fixed::<K>, Parallel::Sequential, &mut scratch, row_function),
                _ => super::step(n_parts, x, rows, Fixed::<K>, &mut scratch, row_function),
            }));
            updater.end_step()?;
        }
        updater.flush(0, &mut table)?;
        Ok((losses, table.values().to_vec()))
    }

    #[test]
    fn parts_have_the_bits_of_one() {
        fn every<R: UpdateRule>(rule: &R) {
            of_columns::<R, 1>(rule);
            of_columns::<R, 2>(rule);
            of_columns::<R, 5>(rule);
            of_columns::<R, 16>(rule);
        }
        fn of_columns<R: UpdateRule, const K: usize>(rule: &R) {
            let one = steps::<R, K>(rule, 1).unwrap();
            for n_parts in [2, 3, 7] {
                let several = steps::<R, K>(rule, n_parts).unwrap();
                assert!(several == one, "{K} columns, {rule:?} in {n_parts}");
            }
        }
        for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
            every(&Sgd { lazy_update, ..Sgd::default() });
            every(&Sgd { momentum: 0.9, weight_decay: 0.01, lazy_update, ..Sgd::default() });
            every(&AdaGrad { weight_decay: 0.01, lazy_update, ..AdaGrad::default() });
            every(&Ftrl { lazy_update, ..Ftrl::default() });
        }
    }
}
