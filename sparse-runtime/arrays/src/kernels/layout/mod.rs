//! The same elements in another shape or order, and repeated. O(size of the result); O(size of the
//! operand) for sums of repetitions.

pub(super) mod cpu;
#[cfg(feature = "cuda")]
pub(super) mod cuda;

use super::strided::Strided;
use crate::formats::{MAX_RANK, Shape};
use sparse_core::ir::{Axes, List};
use sparse_core::shapes::place_of;

/// The shape asked for, what is left open filled in.
pub(super) fn reshape(of: Shape, shape: Option<List>) -> Shape {
    let list = shape.unwrap_or_default();
    let mut dims = [1; MAX_RANK];
    let mut open = None;
    for (place, entry) in list.entries().iter().enumerate() {
        match entry {
            Some(0) => dims[place] = of.get(place).copied().unwrap_or(1),
            Some(extent) if *extent > 0 => dims[place] = *extent as usize,
            _ => open = Some(place),
        }
    }
    let known: usize = dims.iter().product();
    if let Some(place) = open {
        dims[place] = of.size().checked_div(known).unwrap_or(0);
    }
    Shape::new(&dims[..list.len()])
}

/// A matrix with the same rows.
pub(super) fn flatten(x: Shape) -> Shape {
    [x.n_rows(), x.row_size()].into()
}

/// The shape with an axis of extent 1 more.
pub(super) fn expand_dims(x: Shape, axis: i64) -> Shape {
    expanded(&x, axis).0
}

/// The shape with an axis of extent 1 more, and the place of that.
pub(super) fn expanded(shape: &Shape, axis: i64) -> (Shape, usize) {
    let place = place_of(axis, shape.rank() + 1).unwrap_or(0);
    let mut dims = [1; MAX_RANK];
    let rank = (shape.rank() + 1).min(MAX_RANK);
    for (at, dim) in dims[..rank].iter_mut().enumerate().filter(|(at, _)| *at != place) {
        *dim = shape[if at < place { at } else { at - 1 }];
    }
    (Shape::new(&dims[..rank]), place)
}

/// The shape without axes of extent 1.
pub(super) fn squeeze(shape: Shape, axis: Axes) -> Shape {
    let (mut dims, mut rank) = ([1; MAX_RANK], 0);
    for (place, &extent) in shape.iter().enumerate() {
        if extent != 1 || !axis.contain(place, shape.rank()) {
            dims[rank] = extent;
            rank += 1;
        }
    }
    Shape::new(&dims[..rank])
}

/// The shape of the array before its change of shape.
pub(super) fn reshape_like(_x: Shape, like: Shape) -> Shape {
    like
}

/// The axes in another order, or back.
pub(super) fn permute(shape: Shape, axes: Option<List>, inverse: bool) -> (Shape, Strided) {
    let (rank, mut order) = (shape.rank(), [0; MAX_RANK]);
    for (to, axis) in axes.unwrap_or_default().values().enumerate().take(rank) {
        let from = place_of(axis, rank).unwrap_or(to);
        if inverse {
            order[from] = to;
        } else {
            order[to] = from;
        }
    }
    in_order(&shape, &order[..rank])
}

/// Two axes exchanged.
pub(super) fn swap_axes(shape: Shape, first: i64, second: i64) -> (Shape, Strided) {
    let (rank, mut order) = (shape.rank(), [0; MAX_RANK]);
    order.iter_mut().enumerate().for_each(|(axis, place)| *place = axis);
    if let (Some(first), Some(second)) = (place_of(first, rank), place_of(second, rank)) {
        order.swap(first, second);
    }
    in_order(&shape, &order[..rank])
}

/// The opposite order along some axes.
pub(super) fn reverse(shape: Shape, axis: Axes) -> (Shape, Strided) {
    let steps = steps(&shape);
    let turned = |place: usize| axis.contain(place, shape.rank());
    let last = |place: usize| shape[place].saturating_sub(1) * steps[place];
    let start = (0..shape.rank()).filter(|place| turned(*place)).map(last).sum();
    let strided = (0..shape.rank()).fold(Strided::at(start), |strided, place| {
        let step = steps[place] as isize;
        strided.axis(shape[place], if turned(place) { -step } else { step })
    });
    (shape, strided)
}

/// A whole array repeated along each axis.
pub(super) fn tile(shape: Shape, reps: Option<List>) -> (Shape, Strided) {
    let reps = reps.unwrap_or_default();
    let mut dims = [1; MAX_RANK];
    for (axis, extent) in shape.iter().enumerate() {
        dims[axis] = extent * times(reps, axis);
    }
    (Shape::new(&dims[..shape.rank()]), tiled(&shape, reps))
}

/// What [`tile`] repeated.
pub(super) fn tile_gradient(_sum: Shape, like: Shape, reps: Option<List>) -> (Shape, Strided) {
    (like, tiled(&like, reps.unwrap_or_default()))
}

/// Each element repeated along an axis.
pub(super) fn repeat(shape: Shape, repeats: i64, axis: i64) -> (Shape, Strided) {
    let (rank, mut dims) = (shape.rank(), [1; MAX_RANK]);
    dims[..rank].copy_from_slice(&shape);
    if let Some(axis) = place_of(axis, rank) {
        dims[axis] *= repeats.max(0) as usize;
    }
    (Shape::new(&dims[..rank]), repeated(&shape, repeats, axis))
}

/// What [`repeat`] repeated.
pub(super) fn repeat_gradient(
    _sum: Shape,
    like: Shape,
    repeats: i64,
    axis: i64,
) -> (Shape, Strided) {
    (like, repeated(&like, repeats, axis))
}

/// By how much the position grows along each axis of an array.
fn steps(shape: &Shape) -> [usize; MAX_RANK] {
    let mut steps = [1; MAX_RANK];
    for axis in (0..shape.rank().saturating_sub(1)).rev() {
        steps[axis] = steps[axis + 1] * shape[axis + 1];
    }
    steps
}

/// The shape with its axes in another order, and how the elements lie in an array.
pub(super) fn in_order(shape: &Shape, order: &[usize]) -> (Shape, Strided) {
    let steps = steps(shape);
    let mut dims = [1; MAX_RANK];
    let mut strided = Strided::at(0);
    for (to, &from) in order.iter().enumerate() {
        dims[to] = shape[from];
        strided = strided.axis(shape[from], steps[from] as isize);
    }
    (Shape::new(&dims[..order.len()]), strided)
}

/// A whole array repeated along each axis.
fn tiled(shape: &Shape, reps: List) -> Strided {
    let steps = steps(shape);
    (0..shape.rank()).fold(Strided::at(0), |strided, axis| {
        strided.axis(times(reps, axis), 0).axis(shape[axis], steps[axis] as isize)
    })
}

/// Each element repeated along an axis.
fn repeated(shape: &Shape, repeats: i64, axis: i64) -> Strided {
    let (steps, repeated) = (steps(shape), place_of(axis, shape.rank()));
    (0..shape.rank()).fold(Strided::at(0), |strided, axis| {
        let strided = strided.axis(shape[axis], steps[axis] as isize);
        if repeated == Some(axis) { strided.axis(repeats.max(0) as usize, 0) } else { strided }
    })
}

fn times(reps: List, axis: usize) -> usize {
    reps.get(axis).map_or(1, |times| times.max(0) as usize)
}
