//! Shapes of arrays at run time.

use std::fmt;
use std::ops::Deref;

/// The largest rank of an array.
pub const MAX_RANK: usize = 6;

/// The extents of an array, at most [`MAX_RANK`] of them, held inline.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Shape {
    dims: [usize; MAX_RANK],
    rank: usize,
}

impl Shape {
    /// A shape from its extents.
    ///
    /// # Panics
    ///
    /// If there are more than [`MAX_RANK`] extents.
    #[track_caller]
    #[inline]
    pub fn new(dims: &[usize]) -> Self {
        assert!(
            dims.len() <= MAX_RANK,
            "rank {} is above the largest, {MAX_RANK}",
            dims.len()
        );
        let mut shape = Shape {
            dims: [0; MAX_RANK],
            rank: dims.len(),
        };
        shape.dims[..dims.len()].copy_from_slice(dims);
        shape
    }

    /// The number of extents.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of elements, or `None` where it does not fit a `usize`.
    pub fn checked_size(&self) -> Option<usize> {
        self.iter()
            .try_fold(1usize, |size, &dim| size.checked_mul(dim))
    }

    /// The number of elements of an array that exists.
    #[inline]
    pub fn size(&self) -> usize {
        self.iter().product()
    }

    /// The number of rows (1 for rank 0).
    #[inline]
    pub fn n_rows(&self) -> usize {
        if self.rank == 0 { 1 } else { self.dims[0] }
    }

    /// The elements of one row: the product of all extents but the first.
    #[inline]
    pub fn row_size(&self) -> usize {
        self.iter().skip(1).product()
    }
}

impl Deref for Shape {
    type Target = [usize];

    #[inline]
    fn deref(&self) -> &[usize] {
        &self.dims[..self.rank]
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    #[inline]
    fn from(dims: [usize; N]) -> Self {
        Shape::new(&dims)
    }
}

impl From<&[usize]> for Shape {
    #[inline]
    fn from(dims: &[usize]) -> Self {
        Shape::new(dims)
    }
}

/// `[3, 4]`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &**self)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
