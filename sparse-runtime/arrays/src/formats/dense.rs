//! `dense`: every element, row major.

use super::elements::Elements;
use super::memory::ELEMENTS;
use super::{FormatError, Shape};
use crate::device::{Cpu, Device};
use nnz_device::memory;
use sparse_core::element::Element;
use std::ops::Range;

/// A dense array: every element, row major.
///
/// Invariant: the buffer holds exactly `shape.size()` elements.
///
/// ```
/// use nnz::formats::Dense;
/// let x = Dense::from_rows(&[[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]);
/// assert_eq!(x.shape()[..], [3, 2]);
/// assert_eq!(x.row(1), Some(&[3.0, 4.0][..]));
/// assert_eq!(x.get(&[2, 0]), Some(5.0));
/// assert!(Dense::new([2, 2], vec![0.0f32; 3]).is_err());
/// ```
#[derive(Clone)]
pub struct Dense<T: Element = f32, D: Device = Cpu> {
    pub(super) shape: Shape,
    pub(super) values: D::Elements<T>,
}

/// A borrowed dense array, row major and contiguous.
#[derive(Clone, Copy)]
pub struct DenseView<'a, T: Element = f32, D: Device = Cpu> {
    pub(super) shape: Shape,
    pub(super) values: D::Slice<'a, T>,
}

/// On any device.
impl<T: Element, D: Device> Dense<T, D> {
    /// The extents.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Borrowed.
    #[inline]
    pub fn view(&self) -> DenseView<'_, T, D> {
        DenseView { shape: self.shape, values: D::elements(&self.values) }
    }
}

impl<T: Element> Dense<T> {
    /// An array from its values, row major.
    ///
    /// # Errors
    ///
    /// [`FormatError::ValueCount`] if there are not as many values as the shape has elements.
    pub fn new(shape: impl Into<Shape>, values: Vec<T>) -> Result<Self, FormatError> {
        let shape = shape.into();
        check_count(shape, values.len())?;
        Ok(Dense { shape, values: values.into() })
    }

    /// Zeros. The memory is not touched: the system's zero pages serve it.
    ///
    /// # Panics
    ///
    /// If the array cannot be addressed or allocated; [`try_zeros`](Dense::try_zeros) returns the
    /// error.
    #[track_caller]
    pub fn zeros(shape: impl Into<Shape>) -> Self {
        Dense::full(shape, T::default())
    }

    /// One value everywhere.
    ///
    /// # Panics
    ///
    /// If the array cannot be addressed or allocated; [`try_zeros`](Dense::try_zeros) returns the
    /// error.
    #[track_caller]
    pub fn full(shape: impl Into<Shape>, value: T) -> Self {
        let shape = shape.into();
        let size = addressable::<T>(shape);
        // A panic can be caught, where there is no memory the usual allocation ends the process.
        if !memory::is_there_for::<T>(size) {
            let bytes = size * size_of::<T>();
            panic!("{}", FormatError::OutOfMemory { what: ELEMENTS, shape, bytes });
        }
        Dense { shape, values: Elements::full(value, size) }
    }

    /// A matrix from its rows, as in a source file.
    pub fn from_rows<const N: usize>(rows: &[[T; N]]) -> Self {
        Dense { shape: [rows.len(), N].into(), values: rows.as_flattened().into() }
    }

    /// All elements, row major.
    #[inline]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// All elements, row major, for writing.
    #[inline]
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// The elements, row major, without their shape. O(1) for an array that was made of a `Vec` and
    /// did not grow. Other arrays begin at a cache line, and their elements are moved to the front.
    pub fn into_values(self) -> Vec<T> {
        self.values.into()
    }

    /// Row `i`, all of its elements.
    #[inline]
    pub fn row(&self, i: usize) -> Option<&[T]> {
        self.view().row(i)
    }

    /// Row `i`, for writing.
    #[inline]
    pub fn row_mut(&mut self, i: usize) -> Option<&mut [T]> {
        let range = row_range(&self.shape, i)?;
        self.values.get_mut(range)
    }

    /// The element at an index, one number for each extent; `None` outside of the array or for
    /// another rank.
    pub fn get(&self, index: &[usize]) -> Option<T> {
        self.view().get(index)
    }

    /// The same elements under another shape.
    ///
    /// # Errors
    ///
    /// [`FormatError::ValueCount`] if the shape has another number of elements.
    pub fn reshape(self, shape: impl Into<Shape>) -> Result<Self, FormatError> {
        let shape = shape.into();
        check_count(shape, self.values.len())?;
        Ok(Dense { shape, ..self })
    }

    /// Gives every element one value.
    pub fn fill(&mut self, value: T) {
        self.values.fill(value);
    }

    /// Becomes zeros of this shape. Allocates only if the array never was as large.
    ///
    /// # Panics
    ///
    /// If the array cannot be addressed, as `Vec` does.
    #[track_caller]
    #[inline]
    pub fn reset(&mut self, shape: impl Into<Shape>) {
        self.reset_for_overwrite(shape);
        self.values.fill(T::default());
    }

    /// Becomes an array of this shape with arbitrary values. Allocates only if the array never was
    /// as large.
    ///
    /// # Panics
    ///
    /// If the array cannot be addressed, as `Vec` does.
    #[track_caller]
    #[inline]
    pub fn reset_for_overwrite(&mut self, shape: impl Into<Shape>) {
        let shape = shape.into();
        if shape != self.shape {
            self.take_shape(shape);
        }
    }

    /// Becomes zeros of this shape.
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLarge`], [`FormatError::OutOfMemory`]; the array is as before.
    pub(super) fn try_reset(&mut self, shape: Shape) -> Result<(), FormatError> {
        let Some(size) = shape.addressable_size::<T>() else {
            return Err(too_large::<T>(shape));
        };
        self.values.make_room(size, ELEMENTS, shape)?;
        self.reset(shape);
        Ok(())
    }

    #[track_caller]
    #[inline(never)]
    fn take_shape(&mut self, shape: Shape) {
        self.values.resize_for_overwrite(addressable::<T>(shape));
        self.shape = shape;
    }
}

/// On any device.
impl<'a, T: Element, D: Device> DenseView<'a, T, D> {
    /// The extents.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// All elements, row major.
    #[inline]
    pub fn values(&self) -> D::Slice<'a, T> {
        self.values
    }
}

impl<'a, T: Element> DenseView<'a, T> {
    /// A view of values, row major.
    ///
    /// # Errors
    ///
    /// [`FormatError::ValueCount`] if there are not as many values as the shape has elements.
    pub fn new(shape: impl Into<Shape>, values: &'a [T]) -> Result<Self, FormatError> {
        let shape = shape.into();
        check_count(shape, values.len())?;
        Ok(DenseView { shape, values })
    }

    /// A view of a table that is known to have `shape.size()` values. Panics otherwise: a
    /// parameter's table can be replaced.
    #[inline]
    pub fn table(shape: Shape, values: &'a [T]) -> Self {
        assert_eq!(shape.size(), values.len(), "a table of another form");
        DenseView { shape, values }
    }

    /// Row `i`, all of its elements.
    #[inline]
    pub fn row(&self, i: usize) -> Option<&'a [T]> {
        self.values.get(row_range(&self.shape, i)?)
    }

    /// The element at an index, one number for each extent; `None` outside of the array or for
    /// another rank.
    pub fn get(&self, index: &[usize]) -> Option<T> {
        let extents = || index.iter().zip(self.shape.iter());
        if index.len() != self.shape.rank() || extents().any(|(i, extent)| i >= extent) {
            return None;
        }
        // Every extent has been seen, an extent of 0 included: the position is that of an element.
        let position = extents().fold(0, |position, (i, extent)| position * extent + i);
        self.values.get(position).copied()
    }

    /// A run of rows, in O(1).
    ///
    /// # Errors
    ///
    /// [`FormatError::RowRange`] if the array does not have them.
    pub fn rows(&self, range: Range<usize>) -> Result<DenseView<'a, T>, FormatError> {
        check_rows(&range, self.shape.n_rows())?;
        let row_size = self.shape.row_size();
        Ok(DenseView {
            shape: self.shape.with_n_rows(range.len()),
            values: &self.values[range.start * row_size..range.end * row_size],
        })
    }

    /// The same elements under another shape.
    ///
    /// # Errors
    ///
    /// [`FormatError::ValueCount`] if the shape has another number of elements.
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<DenseView<'a, T>, FormatError> {
        DenseView::new(shape, self.values)
    }

    /// A copy that owns its elements.
    pub fn to_owned(&self) -> Dense<T> {
        Dense { shape: self.shape, values: self.values.into() }
    }
}

/// The elements of row `i`, where the array has such a row.
#[inline]
fn row_range(shape: &Shape, i: usize) -> Option<Range<usize>> {
    let row_size = shape.row_size();
    (i < shape.n_rows()).then(|| i * row_size..(i + 1) * row_size)
}

pub(super) fn check_rows(range: &Range<usize>, n_rows: usize) -> Result<(), FormatError> {
    if range.start <= range.end && range.end <= n_rows {
        return Ok(());
    }
    Err(FormatError::RowRange { start: range.start, end: range.end, n_rows })
}

fn check_count(shape: Shape, found: usize) -> Result<(), FormatError> {
    if shape.checked_size() == Some(found) {
        return Ok(());
    }
    Err(FormatError::ValueCount { shape, expected: shape.size(), found })
}

#[track_caller]
fn addressable<T: Element>(shape: Shape) -> usize {
    match shape.addressable_size::<T>() {
        Some(size) => size,
        None => panic!("{}", too_large::<T>(shape)),
    }
}

pub(super) fn too_large<T: Element>(shape: Shape) -> FormatError {
    FormatError::TooLarge { shape, element: T::TYPE }
}

/// No elements, shape `[0]`.
impl<T: Element, D: Device> Default for Dense<T, D> {
    fn default() -> Self {
        Dense { shape: [0].into(), values: D::Elements::default() }
    }
}

/// No elements, shape `[0]`.
impl<T: Element> Default for DenseView<'_, T> {
    fn default() -> Self {
        DenseView { shape: [0].into(), values: &[] }
    }
}

impl<'a, T: Element> From<&'a Dense<T>> for DenseView<'a, T> {
    fn from(array: &'a Dense<T>) -> Self {
        array.view()
    }
}

/// Rank 1.
impl<T: Element> From<Vec<T>> for Dense<T> {
    fn from(values: Vec<T>) -> Self {
        Dense { shape: [values.len()].into(), values: values.into() }
    }
}

/// The same shape and elements (so that NaN differs from itself).
impl<T: Element> PartialEq for Dense<T> {
    fn eq(&self, other: &Self) -> bool {
        self.view() == other.view()
    }
}

/// The same shape and elements (so that NaN differs from itself).
impl<T: Element> PartialEq for DenseView<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.values == other.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_elements() {
        let x = Dense::new([2, 3, 2], (0..12u32).collect()).unwrap();
        assert_eq!(x.row(1), Some(&[6, 7, 8, 9, 10, 11][..]));
        assert_eq!((x.row(2), x.get(&[1, 2, 0])), (None, Some(10)));
        assert_eq!((x.get(&[0, 3, 0]), x.get(&[0, 0])), (None, None));
        let tail = x.view().rows(1..2).unwrap();
        assert_eq!(tail.shape()[..], [1, 3, 2]);
        assert_eq!(tail.values(), &x.values()[6..]);
        assert_eq!(x.view().rows(2..2).unwrap().values().len(), 0);
        assert_eq!(
            x.view().rows(1..3).unwrap_err(),
            FormatError::RowRange { start: 1, end: 3, n_rows: 2 }
        );
    }

    #[test]
    fn reset_keeps_the_allocation_and_clears() {
        let mut x = Dense::full([4, 4], 7.0f32);
        let buffer = x.values().as_ptr();
        x.reset([2, 3]);
        assert_eq!((x.values(), x.values().as_ptr()), (&[0.0; 6][..], buffer));
        x.reset_for_overwrite([16]);
        assert_eq!((x.shape()[0], x.values().as_ptr()), (16, buffer));
    }

    #[test]
    fn counts_are_checked_without_overflow() {
        let shape = Shape::from([usize::MAX, usize::MAX]);
        assert!(Dense::<f32>::new(shape, vec![]).is_err());
        assert!(DenseView::<f32>::new([0, usize::MAX], &[]).is_ok());
        let none = Dense::<f32>::new([usize::MAX, usize::MAX, 0], vec![]).unwrap();
        assert_eq!(none.get(&[usize::MAX - 1, usize::MAX - 1, 0]), None);
        assert_eq!(none.row(usize::MAX - 1), Some(&[][..]));
        let wrong = Dense::from_rows(&[[1.0f32, 2.0]]).reshape([3]).unwrap_err();
        assert_eq!(wrong.to_string(), "shape [3] has 3 elements, but 2 values were given");
    }

    #[test]
    #[should_panic(expected = "keep it sparse")]
    fn unaddressable_zeros_panic_as_a_vec_does() {
        let _ = Dense::<f32>::zeros([usize::MAX, 2]);
    }
}
