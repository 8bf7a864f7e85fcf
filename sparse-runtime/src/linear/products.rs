//! The product of a csr row with a parameter, and the updates that its gradient comes to.

use super::Width;
use crate::formats::ColumnId;
use crate::optimizer::{ReadRows, RowCursor, UpdateKind};
use sparse_core::element::{Factor, Float};
use sparse_core::update_rules::UpdateRule;

/// Adds the product of a csr row with the parameter to `scores`, which are zero.
///
/// # Safety
///
/// `ids` are below the parameter's rows; `scores` has as many elements as a row.
#[inline(always)]
pub(crate) unsafe fn product<'a, T: Float, V: Factor<T>, W: Width, I: ColumnId>(
    ids: &[I],
    values: &[V],
    rows: impl ReadRows<'a, T>,
    width: W,
    scores: &mut [T::Accumulator],
) {
    if let [score] = scores {
        // SAFETY: promised by the caller.
        let weight = |id: &I| unsafe { rows.value(id.at(), 0) }.widen();
        *score = sum_of_products::<T, V, I>(ids, values, weight);
        return;
    }
    width.in_registers(
        scores,
        #[inline(always)]
        |scores| {
            for (id, value) in ids.iter().zip(values) {
                // SAFETY: promised by the caller.
                let weights = unsafe { rows.row(id.at()) };
                for (score, weight) in scores.iter_mut().zip(weights) {
                    *score += value.times(weight.widen());
                }
            }
        },
    );
}

/// [`product`] with a parameter of one column, given what leads to the weight of each entry, in four sums, so that an addition does not
/// wait for the one before it.
#[inline(always)]
pub(crate) fn sum_of_products<T: Float, V: Factor<T>, I>(
    ids: &[I],
    values: &[V],
    weight: impl Fn(&I) -> T::Accumulator,
) -> T::Accumulator {
    let term = |id: &I, value: &V| value.times(weight(id));
    let zero = T::zero().widen();
    // Of the shortest rows, without the sums that stay 0: to the same bits.
    match (ids, values) {
        ([], _) => return zero,
        ([id], [value]) => return zero + term(id, value),
        ([a, b], [x, y]) => return (zero + term(a, x)) + (zero + term(b, y)),
        _ => {}
    }
    let mut sums = [zero; 4];
    let (id_chunks, id_rest) = ids.as_chunks::<4>();
    let (value_chunks, value_rest) = values.as_chunks::<4>();
    for (ids, values) in id_chunks.iter().zip(value_chunks) {
        for lane in 0..4 {
            sums[lane] += term(&ids[lane], &values[lane]);
        }
    }
    for (lane, (id, value)) in id_rest.iter().zip(value_rest).enumerate() {
        sums[lane] += term(id, value);
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// Updates the rows that a csr row names, each once, with its value times `gradient`, which may be overwritten.
///
/// # Safety
///
/// As for [`product`].
#[inline(always)]
pub(crate) unsafe fn scatter<
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    K: UpdateKind,
    I: ColumnId,
>(
    ids: &[I],
    values: &[V],
    rows: RowCursor<'_, R, T, K>,
    width: W,
    gradient: &mut [T::Accumulator],
) {
    width.in_registers(
        gradient,
        #[inline(always)]
        |gradient| {
            if let Some(factor) = rows.plain_factor() {
                gradient.iter_mut().for_each(|gradient| *gradient *= factor);
                for (id, value) in ids.iter().zip(values) {
                    // SAFETY: promised by the caller.
                    unsafe { rows.add_row(id.at(), gradient, |change| value.times(change)) };
                }
                return;
            }
            for (id, value) in ids.iter().zip(values) {
                let by = |gradient, _| value.times(gradient);
                // SAFETY: promised by the caller.
                unsafe { rows.update_row_by(id.at(), gradient, by) };
            }
        },
    );
}
