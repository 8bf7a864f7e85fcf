//! The product of a csr row with a parameter, and the updates by its gradient.

use super::Width;
use crate::optimizer::{CatchUp, ReadRows, RowCursor, UpdateKind};
use nnz_arrays::formats::{ColumnId, LANES};
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float};

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

/// [`product`] with rows that are [settled](CatchUp::settle) first, `updated` as there. Weights of
/// rows of one column are read as they are settled, in the same pass.
///
/// # Safety
///
/// As for [`product`]; `settling` is that of the rows.
#[inline(always)]
pub(crate) unsafe fn settled_product<
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
    settling: &mut CatchUp<'_, R, T>,
    updated: bool,
    width: W,
    scores: &mut [T::Accumulator],
) {
    // Constants by themselves: nothing is compiled for rows that never wait, or not for scalars.
    if !K::PLAIN
        && CatchUp::<R, T>::HAS_SCALARS
        && let [score] = scores
        && settling.settles_by_scalars::<K>()
    {
        let scalars = settling.scalars();
        let sum = try_sum_of_products::<T, V, I>(
            ids,
            values,
            #[inline(always)]
            // SAFETY: promised by the caller.
            |id| unsafe { settling.settled_weight(scalars, rows, id.at(), updated) }.map(T::widen),
        );
        if let Some(sum) = sum {
            *score = sum;
            return;
        }
        // From here on it does not matter which of the rows are settled.
    }
    // SAFETY: promised by the caller.
    unsafe {
        settling.settle_each(rows, ids, updated);
        product(ids, values, rows, width, scores);
    }
}

/// [`settled_product`] with a parameter of one column, and the first part of the updates of its
/// rows, which [follow](follow_each).
///
/// # Safety
///
/// As for [`settled_product`]; rows [settle by scalars](CatchUp::settles_by_scalars), and have a
/// [first part](RowCursor::HAS_TWO_PARTS).
#[inline(always)]
pub(super) unsafe fn begun_product<
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    K: UpdateKind,
    I: ColumnId,
>(
    ids: &[I],
    values: &[V],
    rows: RowCursor<'_, R, T, K>,
    settling: &mut CatchUp<'_, R, T>,
) -> T::Accumulator {
    let scalars = settling.scalars();
    let sum = try_sum_of_products::<T, V, I>(
        ids,
        values,
        #[inline(always)]
        // SAFETY: promised by the caller.
        |id| Some(unsafe { settling.begin_weight(scalars, rows, id.at()) }.widen()),
    );
    // Each weight is given.
    sum.unwrap_or(T::zero().widen())
}

/// The second part of what [`begun_product`] begins: each row gets its value times `gradient`.
///
/// # Safety
///
/// As for [`begun_product`], of the same ids.
#[inline(always)]
pub(super) unsafe fn follow_each<
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    K: UpdateKind,
    I: ColumnId,
>(
    ids: &[I],
    values: &[V],
    rows: RowCursor<'_, R, T, K>,
    gradient: T::Accumulator,
) {
    // SAFETY: promised by the caller; there are as many ids as values, which places are below.
    unsafe {
        rows.follow_each(
            ids.len().min(values.len()),
            #[inline(always)]
            |place| ids.get_unchecked(place).at(),
            #[inline(always)]
            |place| values.get_unchecked(place).times(gradient),
        )
    }
}

/// [`product`] with a parameter of one column, given what leads to the weight of each entry, in
/// four sums, so that an addition does not wait for the one before it.
#[inline(always)]
pub(crate) fn sum_of_products<T: Float, V: Factor<T>, I>(
    ids: &[I],
    values: &[V],
    weight: impl Fn(&I) -> T::Accumulator,
) -> T::Accumulator {
    let sum = try_sum_of_products::<T, V, I>(
        ids,
        values,
        #[inline(always)]
        |id| Some(weight(id)),
    );
    // There is none where a weight is not given.
    sum.unwrap_or(T::zero().widen())
}

/// Four sums that take the terms of a row in turn, each by its place in the row, while it goes
/// through [stages](crate::thread_pipeline): each adds its entries to what the stage before has
/// left.
pub(crate) type HandedOn<A> = [A; LANES];

/// Adds the terms of a row's entries below a column to what the stages before have left, if there
/// are any, given which sum's turn it is; tells how many there are. The sums of a whole row are
/// those of [`sum_of_products`].
#[inline(always)]
pub(crate) fn add_terms_below<T: Float, V: Factor<T>, I: ColumnId>(
    handed_on: &mut HandedOn<T::Accumulator>,
    lane: Option<usize>,
    ids: &[I],
    values: &[V],
    bound: usize,
    weight: impl Fn(&I) -> T::Accumulator,
) -> usize {
    let mut sums = [T::zero().widen(); 4];
    // The sum whose turn it is comes first.
    let place = |number: usize| (lane.unwrap_or(0) + number) % LANES;
    if lane.is_some() {
        sums = std::array::from_fn(|number| handed_on[place(number)]);
    }
    let mut count = 0;
    for (ids, values) in ids.as_chunks::<4>().0.iter().zip(values.as_chunks::<4>().0) {
        if ids[3].at() >= bound {
            break;
        }
        for (sum, (id, value)) in sums.iter_mut().zip(ids.iter().zip(values)) {
            *sum += value.times(weight(id));
        }
        count += 4;
    }
    // Of four one is beyond, or there are not as many.
    for (sum, (id, value)) in sums.iter_mut().zip(ids[count..].iter().zip(&values[count..])) {
        if id.at() >= bound {
            break;
        }
        *sum += value.times(weight(id));
        count += 1;
    }
    sums.into_iter().enumerate().for_each(|(number, sum)| handed_on[place(number)] = sum);
    count
}

/// The sum of a row's terms, of what its last stage has left.
#[inline(always)]
pub(crate) fn sum_handed_on<A: Float>([a, b, c, d]: HandedOn<A>) -> A {
    (a + b) + (c + d)
}

/// [`sum_of_products`], which ends at the first weight that is not given.
#[inline(always)]
fn try_sum_of_products<T: Float, V: Factor<T>, I>(
    ids: &[I],
    values: &[V],
    mut weight: impl FnMut(&I) -> Option<T::Accumulator>,
) -> Option<T::Accumulator> {
    /// Inlined wherever it is used, as a closure with a name might not be.
    #[inline(always)]
    fn term<T: Float, V: Factor<T>, I>(
        (id, value): (&I, &V),
        weight: &mut impl FnMut(&I) -> Option<T::Accumulator>,
    ) -> Option<T::Accumulator> {
        Some(value.times(weight(id)?))
    }
    let weight = &mut weight;
    let zero = T::zero().widen();
    // Of the shortest rows, without the sums that stay 0: to the same bits.
    match (ids, values) {
        ([], _) => return Some(zero),
        ([id], [value]) => return Some(zero + term::<T, V, I>((id, value), weight)?),
        ([a, b], [x, y]) => {
            return Some(
                (zero + term::<T, V, I>((a, x), weight)?)
                    + (zero + term::<T, V, I>((b, y), weight)?),
            );
        }
        _ => {}
    }
    let mut sums = [zero; 4];
    let (id_chunks, id_rest) = ids.as_chunks::<4>();
    let (value_chunks, value_rest) = values.as_chunks::<4>();
    for (ids, values) in id_chunks.iter().zip(value_chunks) {
        let [a, b, c, d] = ids;
        let [w, x, y, z] = values;
        // Written out: a loop that may end early is not unrolled.
        let terms = [
            term::<T, V, I>((a, w), weight)?,
            term::<T, V, I>((b, x), weight)?,
            term::<T, V, I>((c, y), weight)?,
            term::<T, V, I>((d, z), weight)?,
        ];
        for (sum, term) in sums.iter_mut().zip(terms) {
            *sum += term;
        }
    }
    // Written out as well: a sum that a number chooses lies in memory, and what has been stored in
    // parts is waited for as a whole.
    let mut rest = id_rest.iter().zip(value_rest);
    if let Some(entry) = rest.next() {
        sums[0] += term::<T, V, I>(entry, weight)?;
        if let Some(entry) = rest.next() {
            sums[1] += term::<T, V, I>(entry, weight)?;
            if let Some(entry) = rest.next() {
                sums[2] += term::<T, V, I>(entry, weight)?;
            }
        }
    }
    Some((sums[0] + sums[1]) + (sums[2] + sums[3]))
}

/// Updates the rows that a csr row names, each once, with its value times `gradient`, which may be
/// overwritten.
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
            if let [gradient] = *gradient
                && width.columns() == 1
            {
                // SAFETY: promised by the caller; there are as many ids as values, which places are
                // below.
                return unsafe {
                    rows.update_each(
                        ids.len().min(values.len()),
                        #[inline(always)]
                        |place| ids.get_unchecked(place).at(),
                        #[inline(always)]
                        |place| values.get_unchecked(place).times(gradient),
                    )
                };
            }
            for (id, value) in ids.iter().zip(values) {
                let by = |gradient, _| value.times(gradient);
                // SAFETY: promised by the caller.
                unsafe { rows.update_row_in_eights(id.at(), gradient, by) };
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_make_the_sum_of_a_row() {
        let weight = |id: &u32| 1.0 / (*id as f32 + 3.0);
        for n_entries in 0..40 {
            let ids: Vec<u32> = (0..n_entries).map(|entry| entry * 3 + entry % 2).collect();
            let values: Vec<f32> = ids.iter().map(|id| (*id as f32).sin()).collect();
            let expected = sum_of_products::<f32, f32, _>(&ids, &values, weight);
            for (first, second) in [(0, 0), (0, 200), (17, 17), (17, 60), (30, 31), (200, 200)] {
                let (mut handed_on, mut starts) = ([f32::NAN; 4], vec![0]);
                for (stage, bound) in [first, second, 200].into_iter().enumerate() {
                    let start = starts[stage];
                    let before = (stage > 0).then_some(start);
                    let (ids, values) = (&ids[start..], &values[start..]);
                    let count = add_terms_below::<f32, f32, _>(
                        &mut handed_on,
                        before,
                        ids,
                        values,
                        bound,
                        weight,
                    );
                    assert_eq!(count, ids.iter().filter(|id| id.at() < bound).count());
                    starts.push(start + count);
                }
                let found = sum_handed_on(handed_on);
                assert_eq!(found.to_bits(), expected.to_bits(), "{n_entries}: {starts:?}");
            }
        }
    }
}
