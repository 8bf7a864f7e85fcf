//! NumPy's broadcasting: arrays read as if repeated to a larger shape.

use crate::formats::{MAX_RANK, Shape};

/// The shape of an element-wise result: extents equal or 1, aligned from the right.
pub(crate) fn broadcast(lhs: &Shape, rhs: &Shape) -> Shape {
    let (longer, shorter) = if lhs.rank() >= rhs.rank() { (lhs, rhs) } else { (rhs, lhs) };
    // Known at a glance in most calls.
    if lhs == rhs || shorter.iter().all(|extent| *extent == 1) {
        return *longer;
    }
    let mut dims = [0; MAX_RANK];
    let dims = &mut dims[..longer.rank()];
    dims.copy_from_slice(longer);
    let offset = longer.rank() - shorter.rank();
    for (dim, &other) in dims[offset..].iter_mut().zip(shorter.iter()) {
        debug_assert!(*dim == other || *dim == 1 || other == 1);
        if *dim == 1 {
            *dim = other;
        }
    }
    Shape::new(dims)
}

/// Where one run is all of `shape`, known at a glance: whether an array moves on within it, or
/// repeats its one element.
#[inline]
pub(crate) fn moves_in_one_run(shape: &Shape, array: &Shape) -> Option<bool> {
    let repeats = array.iter().all(|extent| *extent == 1);
    (repeats || array == shape).then_some(!repeats)
}

/// For each axis of `target`, by how much the position in an array of shape `source` grows: 0 where
/// it repeats.
pub(crate) fn strides(source: &Shape, target: &Shape) -> [usize; MAX_RANK] {
    debug_assert!(source.rank() <= target.rank());
    let mut strides = [0; MAX_RANK];
    let offset = target.rank() - source.rank();
    let mut step = 1;
    for axis in (0..source.rank()).rev() {
        if source[axis] != 1 {
            strides[offset + axis] = step;
            step *= source[axis];
        }
    }
    strides
}

/// The positions of the elements of a shape in `N` arrays that broadcast to it, run by run.
///
/// Axes are merged where no array tells them apart, so that arrays of one shape are one run, a row
/// over a matrix is a run a row, and one element over anything is one run. Within a run the
/// position in an array grows by 1 or stays.
pub(crate) struct Walk<const N: usize> {
    /// The extents of the merged axes; the last is the length of a run.
    extents: [usize; MAX_RANK],
    strides: [[usize; MAX_RANK]; N],
    rank: usize,
}

impl<const N: usize> Walk<N> {
    /// Walks through `shape`.
    pub(crate) fn new(shape: &Shape, arrays: [&Shape; N]) -> Self {
        let given = arrays.map(|array| strides(array, shape));
        let mut walk = Walk { extents: [1; MAX_RANK], strides: [[0; MAX_RANK]; N], rank: 0 };
        for axis in 0..shape.rank() {
            let extent = shape[axis];
            if extent == 1 {
                continue;
            }
            let merges = walk.rank > 0
                && (0..N)
                    .all(|array| walk.strides[array][walk.rank - 1] == given[array][axis] * extent);
            if !merges {
                walk.rank += 1;
                walk.extents[walk.rank - 1] = 1;
            }
            walk.extents[walk.rank - 1] *= extent;
            for (strides, given) in walk.strides.iter_mut().zip(&given) {
                strides[walk.rank - 1] = given[axis];
            }
        }
        walk.rank = walk.rank.max(1);
        walk
    }

    /// The extents of the merged axes, at least one.
    #[cfg(feature = "cuda")]
    pub(crate) fn extents(&self) -> &[usize] {
        &self.extents[..self.rank]
    }

    /// As the `walk` of the kernels of a GPU: extents, and strides in up to two arrays.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_gpu(&self) -> [u64; 3 * MAX_RANK] {
        let mut numbers = [0; 3 * MAX_RANK];
        let lists = std::iter::once(&self.extents).chain(&self.strides);
        for (numbers, list) in numbers.chunks_exact_mut(MAX_RANK).zip(lists) {
            for (number, &of) in numbers.iter_mut().zip(&list[..self.rank]) {
                *number = of as u64;
            }
        }
        numbers
    }

    /// The elements of a run.
    #[inline]
    pub(crate) fn run(&self) -> usize {
        self.extents[self.rank - 1]
    }

    /// Whether an array moves on within a run, or repeats one element.
    #[inline]
    pub(crate) fn moves(&self, array: usize) -> bool {
        self.strides[array][self.rank - 1] != 0
    }

    /// Calls `visit` for each run, with its first position in the shape and in the arrays.
    #[inline]
    pub(crate) fn for_each_run(&self, mut visit: impl FnMut(usize, [usize; N])) {
        if self.extents[..self.rank].contains(&0) {
            return;
        }
        let (mut start, mut positions, mut index) = (0, [0; N], [0; MAX_RANK]);
        loop {
            visit(start, positions);
            start += self.run();
            if !self.move_on(&mut index, &mut positions) {
                return;
            }
        }
    }

    /// To the next run; `false` after the last one. A function of its own, compiled once and not
    /// with each loop over runs.
    fn move_on(&self, index: &mut [usize; MAX_RANK], positions: &mut [usize; N]) -> bool {
        // Counting up the index, the last axis first.
        for axis in (0..self.rank - 1).rev() {
            index[axis] += 1;
            for (position, strides) in positions.iter_mut().zip(&self.strides) {
                *position += strides[axis];
            }
            if index[axis] < self.extents[axis] {
                return true;
            }
            index[axis] = 0;
            for (position, strides) in positions.iter_mut().zip(&self.strides) {
                *position -= strides[axis] * self.extents[axis];
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(shape: &[usize], source: &[usize]) -> (usize, Vec<usize>) {
        let walk = Walk::new(&Shape::new(shape), [&Shape::new(source)]);
        let (mut runs, mut positions) = (0, Vec::new());
        walk.for_each_run(|start, [first]| {
            assert_eq!(start, positions.len());
            let step = usize::from(walk.moves(0));
            positions.extend((0..walk.run()).map(|i| first + i * step));
            runs += 1;
        });
        (runs, positions)
    }

    #[test]
    fn shapes() {
        let shape = |a: &[usize], b: &[usize]| broadcast(&Shape::new(a), &Shape::new(b)).to_vec();
        assert_eq!(shape(&[4, 1], &[3]), [4, 3]);
        assert_eq!(shape(&[3], &[2, 1, 1]), [2, 1, 3]);
        assert_eq!(shape(&[], &[2, 0]), [2, 0]);
        assert_eq!(shape(&[1], &[0]), [0]);
        assert_eq!(shape(&[], &[]), [0usize; 0]);
    }

    #[test]
    fn runs_are_as_long_as_they_can_be() {
        assert_eq!(positions(&[2, 3], &[2, 3]), (1, vec![0, 1, 2, 3, 4, 5]));
        assert_eq!(positions(&[2, 3], &[]), (1, vec![0; 6]));
        assert_eq!(positions(&[2, 3], &[3]), (2, vec![0, 1, 2, 0, 1, 2]));
        assert_eq!(positions(&[2, 3], &[2, 1]), (2, vec![0, 0, 0, 1, 1, 1]));
        assert_eq!(positions(&[3, 1], &[3, 1]), (1, vec![0, 1, 2]));
        assert_eq!(positions(&[2, 2, 2], &[2, 1, 2]), (4, vec![0, 1, 0, 1, 2, 3, 2, 3]));
        assert_eq!(positions(&[2, 2, 2], &[2, 1]), (4, vec![0, 0, 1, 1, 0, 0, 1, 1]));
        assert_eq!(positions(&[], &[]), (1, vec![0]));
        assert_eq!(positions(&[2, 0, 3], &[1]), (0, vec![]));
    }
}
