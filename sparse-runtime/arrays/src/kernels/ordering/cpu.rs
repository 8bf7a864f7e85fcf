//! Elements in order on the CPU.

use super::{First, Ranking};
use crate::formats::{Dense, DenseView, IdsView, Shape};
use crate::kernels::Context;
use crate::kernels::lookup::Lookup;
use sparse_core::element::Float;
use std::cmp::Ordering;

/// The first elements in order.
pub(in crate::kernels) fn elements_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    ranking: Ranking,
    context: &mut Context,
) {
    out.reset_for_overwrite(ranking.shape());
    let out = out.values_mut();
    ranked(x, ranking, &mut context.ranked, |at, value, _| out[at] = value);
}

/// Their positions.
pub(in crate::kernels) fn positions_dense<T: Float>(
    out: &mut Dense<u64>,
    x: DenseView<'_, T>,
    ranking: Ranking,
    context: &mut Context,
) {
    out.reset_for_overwrite(ranking.shape());
    let out = out.values_mut();
    ranked(x, ranking, &mut context.ranked, |at, _, position| out[at] = position as u64);
}

/// Zeros, and each element at its position.
pub fn order_gradient_dense_ids_like<T: Float>(
    out: &mut Dense<T>,
    grad: DenseView<'_, T>,
    ids: IdsView<'_>,
    like: Shape,
    axis: i64,
    _context: &mut Context,
) {
    let lookup = Lookup::new(&like, axis, false, false);
    // The elements of `grad` for one position of the axes before it.
    let block = grad.shape()[lookup.axis..].iter().product::<usize>().max(1);
    out.reset(like);
    let out = out.values_mut();
    for (index, &value) in grad.values().iter().enumerate() {
        let (outer, inner) = (index / block, index % lookup.inner.max(1));
        if let Some(place) = lookup.place(&ids, index) {
            out[(outer * lookup.extent + place) * lookup.inner + inner] += value;
        }
    }
}

/// The order of two elements and their positions: NaN is larger than any number, and equal ones are
/// in the order of positions.
fn order(a: &(f64, usize), b: &(f64, usize), first: First) -> Ordering {
    let values = match a.0.partial_cmp(&b.0) {
        Some(order) => order,
        None => a.0.is_nan().cmp(&b.0.is_nan()),
    };
    let values = if first == First::Largest { values.reverse() } else { values };
    values.then(a.1.cmp(&b.1))
}

/// Calls `write` for the first elements along the axis, everywhere in the other axes, with the
/// index in the result, the value and the position along the axis.
fn ranked<T: Float>(
    x: DenseView<'_, T>,
    ranking: Ranking,
    scratch: &mut Vec<(f64, usize)>,
    mut write: impl FnMut(usize, T, usize),
) {
    let Lookup { outer, extent, inner, .. } = ranking.lines();
    let (k, first) = (ranking.k.min(extent), ranking.first);
    for (before, after) in
        (0..outer).flat_map(|before| (0..inner).map(move |after| (before, after)))
    {
        let at = |position: usize| x.values()[(before * extent + position) * inner + after];
        scratch.clear();
        scratch.extend((0..extent).map(|position| (at(position).as_f64(), position)));
        if k < extent {
            scratch.select_nth_unstable_by(k, |a, b| order(a, b, first));
        }
        scratch[..k].sort_unstable_by(|a, b| order(a, b, first));
        for (rank, &(_, position)) in scratch[..k].iter().enumerate() {
            write((before * k + rank) * inner + after, at(position), position);
        }
    }
}
