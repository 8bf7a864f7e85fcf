//! Arrays one after the other, along an axis or along a new one.

pub(super) mod cpu;
#[cfg(feature = "cuda")]
pub(super) mod cuda;

use super::layout::expanded;
use crate::formats::{MAX_RANK, Shape};
use sparse_core::shapes::place_of;

/// Two arrays, under these shapes, along an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Join {
    left: Shape,
    right: Shape,
    axis: usize,
}

impl Join {
    /// The shape of both.
    fn shape(&self) -> Shape {
        let mut dims = [0; MAX_RANK];
        dims[..self.left.rank()].copy_from_slice(&self.left);
        dims[self.axis] += self.right[self.axis];
        Shape::new(&dims[..self.left.rank()])
    }
}

/// Along an axis of both.
pub(super) fn concat(left: Shape, right: Shape, axis: i64) -> Join {
    Join { left, right, axis: place_of(axis, left.rank()).unwrap_or(0) }
}

/// Along a new axis.
pub(super) fn stack(left: Shape, _right: Shape, axis: i64) -> Join {
    let (one, axis) = expanded(&left, axis);
    Join { left: one, right: one, axis }
}

/// One more array at the end of a stack.
pub(super) fn stack_next(left: Shape, right: Shape, axis: i64) -> Join {
    let (right, axis) = expanded(&right, axis);
    Join { left, right, axis }
}
