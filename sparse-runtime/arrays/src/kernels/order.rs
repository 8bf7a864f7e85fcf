//! Elements in order along an axis: what `sort`, `argsort`, `topk` and `topk_ids` share.

use super::lookup::Lookup;
use crate::formats::{DenseView, MAX_RANK, Shape};
use sparse_core::element::Float;
use std::cmp::Ordering;

/// Which elements come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// The smallest.
    Smallest,
    /// The largest.
    Largest,
}

/// The order of two elements and their positions: NaN is larger than any number, and equal ones are in the order of positions.
fn order(a: &(f64, usize), b: &(f64, usize), first: First) -> Ordering {
    let values = match a.0.partial_cmp(&b.0) {
        Some(order) => order,
        None => a.0.is_nan().cmp(&b.0.is_nan()),
    };
    let values = if first == First::Largest { values.reverse() } else { values };
    values.then(a.1.cmp(&b.1))
}

/// Calls `write` for the first `k` elements along the axis, everywhere in the other axes, with the index in the result, the value and
/// the position along the axis. A `k` beyond the extent is the extent.
pub(crate) fn ranked<T: Float>(
    x: DenseView<'_, T>,
    axis: i64,
    k: usize,
    first: First,
    scratch: &mut Vec<(f64, usize)>,
    mut write: impl FnMut(usize, T, usize),
) {
    let Lookup { outer, extent, inner, .. } = Lookup::new(x.shape(), axis, false, false);
    let k = k.min(extent);
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

/// The shape with `k` elements along the axis.
pub(crate) fn chosen(shape: &Shape, axis: i64, k: usize) -> Shape {
    let (rank, axis) = (shape.rank(), Lookup::new(shape, axis, false, false).axis);
    let mut dims = [1; MAX_RANK];
    dims[..rank].copy_from_slice(shape);
    dims[axis] = k.min(dims[axis]);
    Shape::new(&dims[..rank])
}
