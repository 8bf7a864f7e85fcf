//! The step of a large batch on several threads, with the bits of one.
//!
//! Rows that wait for steps are settled, each by the thread whose it is; the products of rows of
//! data go from thread to thread, each of which adds what comes of the rows that are its own, and
//! row functions are run by the calling thread in order meanwhile; then each thread updates its
//! rows. So a row of the parameter stays in the cache of one thread. Where threads do not
//! [hand on](crate::column_partition::hand_on), each product is the work of one.

mod sums;
#[cfg(test)]
mod tests;

#[cfg(target_arch = "x86_64")]
use super::own;
use super::products::{HandedOn, add_terms_below, product, sum_handed_on, sum_of_products};
use super::rows::{ahead_of, row_ahead_by};
use super::{
    RowFunctions, Scratch, Width, entries, is_large, prefetch_data, row_ahead, row_of,
    with_row_loops,
};
use crate::column_partition::{Cuts, Piece, RowPart, each_updates};
use crate::optimizer::{ReadRows, RowAccumulator, RowUpdater, RowWeights, Slots, UpdateKind};
use crate::thread_pipeline::in_stages;
use nnz_arrays::formats::{ColumnId, CsrView};
use nnz_arrays::with_column_ids;
use nnz_device::prefetch::LINES_AHEAD;
use nnz_device::thread_pool;
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float, Stored};
use std::ops::Range;

/// As [`step`](super::step), of a batch whose extents were compared with those of the parameter.
/// Threads hand products on if `hands_on`.
pub(super) fn step<R: UpdateRule, T: Float, V: Factor<T>, W: Width, K: UpdateKind>(
    (n_parts, hands_on): (usize, bool),
    x: CsrView<'_, V>,
    mut rows: RowUpdater<'_, R, T, K>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    row_functions: RowFunctions<'_, T::Accumulator>,
) {
    let (n_rows, columns) = (x.n_rows(), width.columns());
    let Scratch { gradients, parts, handed_on, .. } = scratch;
    let (cuts, parts) = parts.divide(n_parts, x, columns);
    settle(x, &mut rows, columns, cuts, parts);
    let stages = cuts.in_stages(x, hands_on);

    // Those of different rows, which are different threads', are different slots. Where a thread's
    // scores read other threads' rows, it would wait for each slot that these write there.
    let slots = if hands_on { rows.slots() } else { None };
    let large = is_large(&rows);
    let shared = rows.shared(columns);
    gradients.resize(n_rows * columns, T::zero().widen());
    let weights = shared.weights();
    // Who finds its entries by itself needs no cuts, which are there in any case where products are
    // handed on, or rows were settled; nor does who has them lie by themselves.
    let is_divided = x.divided_among(n_parts).is_some();
    #[cfg(target_arch = "x86_64")]
    let finds_own = columns == 1 && !is_divided && own::are_summed::<T, V>(x);
    #[cfg(not(target_arch = "x86_64"))]
    let finds_own = false;
    let cuts_rows = !hands_on && !finds_own && !is_divided;
    if columns == 1 && hands_on {
        handed_on.resize(n_rows, [T::zero().widen(); 4]);
        in_stages(
            parts,
            stages.order(),
            handed_on,
            1,
            |stage, _, rows, sums| {
                // SAFETY: stages come one after the other; the columns of `x` are rows of the
                // parameter.
                unsafe { add_sums(rows.clone(), stages.piece(stage, rows), weights, large, sums) }
            },
            |rows, sums| {
                let scores = &mut gradients[rows.clone()];
                scores.iter_mut().zip(sums).for_each(|(score, [sum, ..])| *score = *sum);
                row_functions(rows, scores);
            },
        );
    } else {
        in_stages(
            parts,
            stages.order(),
            gradients,
            columns,
            |stage, _, rows, scores| {
                // SAFETY: as above. The piece is gone when rows are cut.
                unsafe {
                    if columns == 1 {
                        find_products(x, rows.clone(), weights, large, scores);
                    } else {
                        if stage == 0 {
                            scores.fill(T::zero().widen());
                        }
                        let piece = stages.piece(stage, rows.clone());
                        add_scores(rows.clone(), piece, weights, width, large, scores);
                    }
                    if cuts_rows {
                        stages.cut(rows);
                    }
                }
            },
            row_functions,
        );
    }

    let gradients = &*gradients;
    each_updates(parts, |place, part| {
        let RowPart { sums, scratch, .. } = part;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the sums are for the columns of `x`, of one element.
        let is_found =
            finds_own && unsafe { own::accumulate(sums, x, cuts.columns(place), gradients) };
        #[cfg(not(target_arch = "x86_64"))]
        let is_found = false;
        if !is_found {
            let slots = slots.unwrap_or_else(|| sums.own_slots());
            let own = cuts.of(place, x);
            match columns {
                // SAFETY: the sums are for the columns of `x`, of one element.
                1 => unsafe { sums::accumulate::<T, V>(own, (sums, slots), gradients) },
                _ => accumulate::<T, V, W>(own, (sums, slots), gradients, width, scratch),
            }
        }
        // SAFETY: as above.
        unsafe { shared.update_summed(sums) };
        sums.clear();
    });
    rows.finish();
}

/// Settles the rows that a batch reads, of `row_size` elements, each by the thread whose part it is
/// of.
pub(crate) fn settle<R: UpdateRule, T: Float, V: Stored, K: UpdateKind, A: Send>(
    x: CsrView<'_, V>,
    rows: &mut RowUpdater<'_, R, T, K>,
    row_size: usize,
    cuts: &mut Cuts,
    parts: &mut [RowPart<A>],
) {
    if !rows.settles() {
        return;
    }
    cuts.find(x);
    let cuts = &*cuts;
    let large = is_large(rows);
    let shared = rows.shared(row_size);
    thread_pool::each(parts, |place, part| {
        let (own, first_settled) = (cuts.of(place, x), &mut part.first_settled);
        first_settled.clear();
        with_column_ids!(own.columns(), |ids| for row in 0..own.n_rows() {
            if large {
                row_ahead(own, ids, row).iter().for_each(|id| shared.prefetch(id.at()));
            }
            for id in row_of(own, ids, row).0 {
                // SAFETY: rows settle; the columns of `x` are rows of the parameter, and each is of
                // one part.
                unsafe { shared.settle(id.at(), first_settled) };
            }
        });
    });
    for part in parts {
        rows.add_touched(&part.first_settled);
    }
}

/// The products of some rows of data with a parameter of one column.
///
/// # Safety
///
/// The columns of `x` are rows of the parameter, which nobody writes.
#[inline(never)]
unsafe fn find_products<T: Float, V: Factor<T>>(
    x: CsrView<'_, V>,
    rows: Range<usize>,
    weights: RowWeights<'_, T>,
    large: bool,
    products: &mut [T::Accumulator],
) {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: promised by the caller.
        if unsafe { super::avx512::find_products(x, rows.clone(), weights, products) } {
            return;
        }
    }
    // SAFETY: promised by the caller.
    let weight = |id: usize| unsafe { weights.value(id, 0) }.widen();
    with_column_ids!(x.columns(), |ids| for (row, product) in rows.zip(products) {
        prefetch_data(x, ids, row);
        if large {
            weights.prefetch_each(row_ahead_by(LINES_AHEAD, x, ids, row));
        }
        let (ids, values) = row_of(x, ids, row);
        *product = sum_of_products::<T, V, _>(
            ids,
            values,
            #[inline(always)]
            |id| weight(id.at()),
        );
    });
}

/// A stage of the product of some rows of data with a parameter of one column; the last stage
/// leaves the product.
///
/// # Safety
///
/// The columns of the piece, which is of these rows, are rows of the parameter, which nobody
/// writes.
#[inline(never)]
unsafe fn add_sums<T: Float, V: Factor<T>>(
    rows: Range<usize>,
    mut piece: Piece<'_, '_, V>,
    weights: RowWeights<'_, T>,
    large: bool,
    sums: &mut [HandedOn<T::Accumulator>],
) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: promised by the caller.
    if unsafe { super::avx512::add_sums(&mut piece, weights, large, sums) } {
        return;
    }
    // Which entries of a row ahead are of this stage is not known.
    #[cfg(not(target_arch = "x86_64"))]
    let _ = large;
    // SAFETY: promised by the caller.
    let weight = |id: usize| unsafe { weights.value(id, 0) }.widen();
    let (x, is_last, bound) = (piece.matrix(), piece.is_last(), piece.bound());
    let bound = if piece.is_rest() { usize::MAX } else { bound };
    with_column_ids!(x.columns(), |ids| for (place, (row, sums)) in rows.zip(sums).enumerate() {
        prefetch_data(x, ids, row);
        let (ids, values) = piece.rest(ids, place);
        let count = add_terms_below::<T, V, _>(
            sums,
            piece.lane(place),
            ids,
            values,
            bound,
            #[inline(always)]
            |id| weight(id.at()),
        );
        piece.end(place, count);
        if is_last {
            sums[0] = sum_handed_on(*sums);
        }
    });
}

/// A stage of the product of some rows of data with a parameter of several columns.
///
/// # Safety
///
/// The columns of the piece, which is of these rows, are rows of the parameter, of
/// `width.columns()` elements, which nobody writes.
#[inline(never)]
unsafe fn add_scores<T: Float, V: Factor<T>, W: Width>(
    rows: Range<usize>,
    mut piece: Piece<'_, '_, V>,
    weights: RowWeights<'_, T>,
    width: W,
    large: bool,
    scores: &mut [T::Accumulator],
) {
    let x = piece.matrix();
    with_row_loops!(W, x.columns(), |ids| {
        // In here, where the compiler sees it.
        let columns = width.columns();
        let weights = weights.of_size(columns);
        let scores = scores.chunks_exact_mut(columns.max(1));
        for (place, (row, scores)) in rows.zip(scores).enumerate() {
            prefetch_data(x, ids, row);
            weights.prefetch_each(piece.find(ids, place, large));
            let (ids, values) = piece.found(ids, place);
            // SAFETY: promised by the caller; there are as many scores as columns, and several.
            unsafe { product(ids, values, weights, width, scores) };
        }
    });
}

/// Sums the gradients of the rows of one thread, given its entries of the rows of data, in the
/// order of these.
#[inline(never)]
fn accumulate<T: Float, V: Factor<T>, W: Width>(
    own: CsrView<'_, V>,
    (sums, slots): (&mut RowAccumulator, Slots<'_>),
    gradients: &[T::Accumulator],
    width: W,
    scratch: &mut Vec<T::Accumulator>,
) {
    let (columns, are_far) = (width.columns(), slots.are_far());
    with_row_loops!(W, own.columns(), |ids| for row in 0..own.n_rows() {
        let mut ahead = row_ahead_by(ahead_of::<W>(), own, ids, row);
        if !are_far {
            ahead = &[];
        }
        let gradient = &gradients[row * columns..(row + 1) * columns];
        let (ids, values) = row_of(own, ids, row);
        // A copy that no other pointer leads to stays in registers.
        width.with_rows(
            scratch,
            #[inline(always)]
            |copy, _| {
                copy.copy_from_slice(gradient);
                let entries = slots.prefetch_with(ahead, entries(ids, values));
                // SAFETY: the sums are for the columns of the batch, of `columns` elements.
                unsafe { sums.add_outer::<_, T, _>(slots, entries, copy) };
            },
        );
    });
}
