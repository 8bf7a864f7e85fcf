//! Shapes of arrays at run time.

use super::FormatError;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// The largest rank of an array.
pub const MAX_RANK: usize = 6;

/// The extents of an array, at most [`MAX_RANK`] of them, held inline.
///
/// ```
/// use nnz::formats::Shape;
/// let shape = Shape::from([3, 4]);
/// assert_eq!((shape.rank(), shape.n_rows(), shape.row_size(), shape.size()), (2, 3, 4, 12));
/// ```
#[derive(Clone, Copy, Eq, Default)]
pub struct Shape {
    /// Invariant: 0 from `rank` on.
    dims: [usize; MAX_RANK],
    rank: usize,
}

impl Shape {
    /// A shape from extents whose number is known in the source; otherwise use
    /// [`try_new`](Shape::try_new).
    ///
    /// # Panics
    ///
    /// If there are more than [`MAX_RANK`] extents.
    #[track_caller]
    #[inline]
    pub fn new(dims: &[usize]) -> Self {
        assert!(dims.len() <= MAX_RANK, "rank {} is above the largest, {MAX_RANK}", dims.len());
        Shape::from_checked(dims)
    }

    /// A shape from external extents.
    ///
    /// # Errors
    ///
    /// [`FormatError::RankTooHigh`] for more than [`MAX_RANK`] extents.
    pub fn try_new(dims: &[usize]) -> Result<Self, FormatError> {
        if dims.len() > MAX_RANK {
            return Err(FormatError::RankTooHigh { rank: dims.len() });
        }
        Ok(Shape::from_checked(dims))
    }

    #[inline]
    fn from_checked(dims: &[usize]) -> Self {
        let mut shape = Shape { dims: [0; MAX_RANK], rank: dims.len() };
        shape.dims[..dims.len()].copy_from_slice(dims);
        shape
    }

    /// The number of extents.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of elements, or `None` if it does not fit a `usize`.
    pub fn checked_size(&self) -> Option<usize> {
        if self.contains(&0) {
            return Some(0);
        }
        self.iter().try_fold(1usize, |size, &dim| size.checked_mul(dim))
    }

    /// The number of elements if an array of them can be addressed: at most `isize::MAX` bytes.
    pub fn addressable_size<T>(&self) -> Option<usize> {
        self.checked_size().filter(|size| {
            size.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= isize::MAX as usize)
        })
    }

    /// The number of elements; `usize::MAX` if it does not fit (no such array exists).
    #[inline]
    pub fn size(&self) -> usize {
        saturating_product(self)
    }

    /// The number of rows (1 for rank 0).
    #[inline]
    pub fn n_rows(&self) -> usize {
        if self.rank == 0 { 1 } else { self.dims[0] }
    }

    /// The elements of one row: the product of all extents but the first; `usize::MAX` where it
    /// does not fit.
    #[inline]
    pub fn row_size(&self) -> usize {
        saturating_product(self.get(1..).unwrap_or(&[]))
    }

    /// The same shape with another number of rows; rank 0 becomes rank 1.
    #[must_use]
    #[inline]
    pub fn with_n_rows(mut self, n_rows: usize) -> Self {
        self.rank = self.rank.max(1);
        self.dims[0] = n_rows;
        self
    }

    /// The extents if there are exactly two: `(n_rows, n_cols)`.
    #[inline]
    pub fn matrix(&self) -> Option<(usize, usize)> {
        match **self {
            [n_rows, n_cols] => Some((n_rows, n_cols)),
            _ => None,
        }
    }
}

#[inline]
fn saturating_product(dims: &[usize]) -> usize {
    dims.iter().fold(1, |size: usize, &dim| size.saturating_mul(dim))
}

impl Deref for Shape {
    type Target = [usize];

    #[inline]
    fn deref(&self) -> &[usize] {
        &self.dims[..self.rank]
    }
}

/// Every kernel compares shapes: this comparison needs no call, unlike one of arrays.
impl PartialEq for Shape {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let differ = |differ, (a, b): (&usize, &usize)| differ | (a ^ b);
        self.dims.iter().zip(&other.dims).fold(self.rank ^ other.rank, differ) == 0
    }
}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

/// More than [`MAX_RANK`] extents do not compile.
impl<const N: usize> From<[usize; N]> for Shape {
    #[inline]
    fn from(dims: [usize; N]) -> Self {
        const { assert!(N <= MAX_RANK, "an array has at most 6 extents") };
        Shape::from_checked(&dims)
    }
}

impl TryFrom<&[usize]> for Shape {
    type Error = FormatError;

    fn try_from(dims: &[usize]) -> Result<Self, FormatError> {
        Shape::try_new(dims)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_saturate_instead_of_wrapping() {
        let huge = Shape::from([2, usize::MAX, 3]);
        assert_eq!(huge.checked_size(), None);
        assert_eq!((huge.size(), huge.row_size()), (usize::MAX, usize::MAX));
        let empty = Shape::from([usize::MAX, usize::MAX, 0]);
        assert_eq!((empty.checked_size(), empty.size()), (Some(0), 0));
        let half = Shape::from([isize::MAX as usize / 4 + 1]);
        assert_eq!(half.addressable_size::<f32>(), None);
        assert_eq!(half.addressable_size::<u8>(), Some(half.size()));
    }

    #[test]
    fn shapes_differ_in_any_extent_and_in_rank() {
        let shape = Shape::from([3, 4, 5]);
        assert_eq!(shape, Shape::new(&[3, 4, 5]));
        let others = [&[4, 4, 5][..], &[3, 5, 5], &[3, 4, 4], &[3, 4], &[3, 4, 5, 0], &[]];
        assert!(others.iter().all(|other| Shape::new(other) != shape));
        assert_ne!(Shape::new(&[]), Shape::new(&[0]));
    }

    #[test]
    fn rank_is_checked() {
        assert_eq!(
            Shape::try_new(&[1; MAX_RANK + 1]),
            Err(FormatError::RankTooHigh { rank: MAX_RANK + 1 })
        );
        assert_eq!(Shape::try_new(&[]).map(|shape| shape.size()), Ok(1));
    }
}
