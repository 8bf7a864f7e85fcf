//! Hogwild: steps of one sample each, on a table that other threads update meanwhile.

use super::rows::{prefetch_data, row_of};
use super::{Scratch, Width, sum_of_products, with_row_loops};
use crate::model::RowSteps;
use crate::optimizer::{AddressesAhead, HogwildCursor, HogwildRows, RowAddress};
use nnz_arrays::formats::{ColumnId, CsrView};
use nnz_arrays::kernels::row_loss::RowLoss;
use nnz_device::prefetch::AHEAD;
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float};
use std::ops::Range;

/// As [`steps`](super::steps), of a batch whose extents were compared with those of the rows.
#[inline(never)]
pub(super) fn steps<
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    C: Copy,
    L: RowLoss<T::Accumulator>,
>(
    x: CsrView<'_, V>,
    range: Range<usize>,
    rows: HogwildRows<'_, R, T>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    kept: &mut C,
    row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator], &mut C) -> L,
) -> RowSteps {
    let columns = width.columns();
    macro_rules! each_row {
        ($plain:literal, $copies:literal) => {{
            let (cursor, ahead) = rows.cursor::<$plain, $copies>(columns);
            with_row_loops!(W, x.columns(), |ids| {
                each_row(x, ids, range, cursor, ahead, width, scratch, kept, row_function)
            })
        }};
    }
    match (rows.is_plain(), rows.has_copies()) {
        (true, true) => each_row!(true, true),
        (true, false) => each_row!(true, false),
        (false, true) => each_row!(false, true),
        (false, false) => each_row!(false, false),
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn each_row<
    'a,
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    I: ColumnId,
    C: Copy,
    L: RowLoss<T::Accumulator>,
    const PLAIN: bool,
    const COPIES: bool,
>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    range: Range<usize>,
    rows: HogwildCursor<'_, R, T, PLAIN, COPIES>,
    ahead: &mut AddressesAhead,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    kept: &mut C,
    mut row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator], &mut C) -> L,
) -> RowSteps {
    // Places are looked up once, early enough that what is there can be asked for.
    let look_up = |ahead: &mut AddressesAhead, row: usize| {
        let places = &mut ahead[row % (AHEAD + 1)];
        places.clear();
        places.extend(row_of(x, ids, row).0.iter().map(|id| rows.place(id.at())));
        for place in places {
            rows.prefetch(*place);
        }
    };
    let mut steps = RowSteps::default();
    let mut own = *kept;
    for row in range.clone().take(AHEAD) {
        look_up(ahead, row);
    }
    for row in range.clone() {
        prefetch_data(x, ids, row);
        if row + AHEAD < range.end {
            look_up(ahead, row + AHEAD);
        }
        let (places, values) = (&ahead[row % (AHEAD + 1)][..], row_of(x, ids, row).1);
        let loss = width.with_rows(
            &mut scratch.rows,
            #[inline(always)]
            |scores, saved| {
                // SAFETY: a view's columns are below its `n_cols`, which was compared with the
                // rows; there are as many scores as elements of a row.
                unsafe { product(places, values, rows, scores) };
                let loss = row_function(row, scores, saved, &mut own);
                for (place, value) in places.iter().zip(values) {
                    for (column, gradient) in scores.iter().enumerate() {
                        // SAFETY: as above.
                        unsafe { rows.update(*place, column, value.times(*gradient)) };
                    }
                }
                loss
            },
        );
        if !steps.add(loss.now().as_f64()) {
            break;
        }
    }
    *kept = own;
    steps
}

/// Adds the product of a csr row with the parameter to `scores`, which are zero.
///
/// # Safety
///
/// The places are those of rows that are there, which have as many elements as there are scores.
#[inline(always)]
unsafe fn product<R: UpdateRule, T: Float, V: Factor<T>, const PLAIN: bool, const COPIES: bool>(
    places: &[RowAddress],
    values: &[V],
    rows: HogwildCursor<'_, R, T, PLAIN, COPIES>,
    scores: &mut [T::Accumulator],
) {
    if let [score] = scores {
        // SAFETY: promised by the caller.
        let weight = |place: &RowAddress| unsafe { rows.value(*place, 0) };
        *score = sum_of_products::<T, V, RowAddress>(places, values, weight);
        return;
    }
    for (place, value) in places.iter().zip(values) {
        for (column, score) in scores.iter_mut().enumerate() {
            // SAFETY: promised by the caller.
            *score += value.times(unsafe { rows.value(*place, column) });
        }
    }
}
