//! Elements in order along an axis, and their positions. O(size · log of the axis' extent), of the
//! first `k` O(size + size of the result · log k); no memory but one axis of scratch.

pub(super) mod cpu;
#[cfg(feature = "cuda")]
pub(super) mod cuda;

use super::lookup::Lookup;
use crate::formats::{MAX_RANK, Shape};

/// Which elements come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// The smallest.
    Smallest,
    /// The largest.
    Largest,
}

/// The first `k` elements along an axis. A `k` beyond the extent is the extent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranking {
    shape: Shape,
    axis: i64,
    k: usize,
    first: First,
}

impl Ranking {
    /// The shape with `k` elements along the axis.
    fn shape(&self) -> Shape {
        let (rank, axis) = (self.shape.rank(), self.lines().axis);
        let mut dims = [1; MAX_RANK];
        dims[..rank].copy_from_slice(&self.shape);
        dims[axis] = self.k.min(dims[axis]);
        Shape::new(&dims[..rank])
    }

    /// The elements along the axis, for each place before and after it.
    fn lines(&self) -> Lookup {
        Lookup::new(&self.shape, self.axis, false, false)
    }
}

/// All elements in order.
pub(super) fn sort(shape: Shape, axis: i64, descending: bool) -> Ranking {
    let first = if descending { First::Largest } else { First::Smallest };
    Ranking { shape, axis, k: usize::MAX, first }
}

/// The positions of all elements in order.
pub(super) fn argsort(shape: Shape, axis: i64, descending: bool) -> Ranking {
    sort(shape, axis, descending)
}

/// The first elements.
pub(super) fn topk(shape: Shape, k: i64, axis: i64, smallest: bool) -> Ranking {
    let first = if smallest { First::Smallest } else { First::Largest };
    Ranking { shape, axis, k: usize::try_from(k).unwrap_or(0), first }
}

/// The positions of the first elements.
pub(super) fn topk_ids(shape: Shape, k: i64, axis: i64, smallest: bool) -> Ranking {
    topk(shape, k, axis, smallest)
}
