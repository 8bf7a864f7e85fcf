//! The position of the largest element along an axis or in an array, and of the smallest.

pub(super) mod cpu;
#[cfg(feature = "cuda")]
pub(super) mod cuda;

use crate::formats::{MAX_RANK, Shape};
use sparse_core::ir::Axes;

/// The positions that are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extreme {
    /// The shape of the result.
    result: Shape,
    /// The axis; `None` of the whole array, row major.
    axis: Option<usize>,
    /// Whether the largest element is, and not the smallest.
    largest: bool,
}

/// The largest elements.
pub(super) fn argmax(shape: Shape, axis: Axes, keepdims: bool) -> Extreme {
    let (result, axis) = without(&shape, axis, keepdims);
    Extreme { result, axis, largest: true }
}

/// The smallest elements.
pub(super) fn argmin(shape: Shape, axis: Axes, keepdims: bool) -> Extreme {
    Extreme { largest: false, ..argmax(shape, axis, keepdims) }
}

/// The shape without the axis, or with 1 in its place, and the axis.
pub(super) fn without(shape: &Shape, axis: Axes, keepdims: bool) -> (Shape, Option<usize>) {
    let (mut dims, mut rank) = ([1; MAX_RANK], 0);
    for (place, &extent) in shape.iter().enumerate() {
        let gone = axis.contain(place, shape.rank());
        if !gone || keepdims {
            dims[rank] = if gone { 1 } else { extent };
            rank += 1;
        }
    }
    let one = axis.0.is_some();
    let axis = (0..shape.rank()).find(|place| one && axis.contain(*place, shape.rank()));
    (Shape::new(&dims[..rank]), axis)
}
