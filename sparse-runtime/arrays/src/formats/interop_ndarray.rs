//! Exchange with `ndarray`; what is copied and what is not is in the documentation of
//! [`formats`](super).

use super::dense::too_large;
use super::{Dense, DenseView, FormatError, Shape};
use ndarray::{Array, ArrayD, ArrayView, ArrayViewD, Dimension, IxDyn};
use sparse_core::element::Element;

/// Without copying.
///
/// # Errors
///
/// [`FormatError::TooLarge`] for an array without elements whose other extents `ndarray` cannot
/// represent.
impl<'a, T: Element> TryFrom<DenseView<'a, T>> for ArrayViewD<'a, T> {
    type Error = FormatError;

    fn try_from(array: DenseView<'a, T>) -> Result<Self, FormatError> {
        ArrayView::from_shape(IxDyn(&array.shape), array.values)
            .map_err(|_| too_large::<T>(array.shape))
    }
}

/// Without another allocation; elements move as by [`Dense::into_values`].
///
/// # Errors
///
/// [`FormatError::TooLarge`] for an array without elements whose other extents `ndarray` cannot
/// represent.
impl<T: Element> TryFrom<Dense<T>> for ArrayD<T> {
    type Error = FormatError;

    fn try_from(array: Dense<T>) -> Result<Self, FormatError> {
        let shape = array.shape;
        Array::from_shape_vec(IxDyn(&shape), array.into_values()).map_err(|_| too_large::<T>(shape))
    }
}

/// Without copying where the array is in standard layout and all of its buffer; else with one copy.
///
/// # Errors
///
/// [`FormatError::RankTooHigh`].
impl<T: Element, D: Dimension> TryFrom<Array<T, D>> for Dense<T> {
    type Error = FormatError;

    fn try_from(array: Array<T, D>) -> Result<Self, FormatError> {
        let shape = Shape::try_new(array.shape())?;
        if !array.is_standard_layout() {
            return Dense::new(shape, array.iter().copied().collect());
        }
        let (mut values, offset) = array.into_raw_vec_and_offset();
        if let Some(offset @ 1..) = offset {
            values.drain(..offset);
        }
        values.truncate(shape.size());
        Dense::new(shape, values)
    }
}

/// Without copying.
///
/// # Errors
///
/// [`FormatError::Layout`] unless the view is in standard layout; [`FormatError::RankTooHigh`].
impl<'a, T: Element, D: Dimension> TryFrom<ArrayView<'a, T, D>> for DenseView<'a, T> {
    type Error = FormatError;

    fn try_from(array: ArrayView<'a, T, D>) -> Result<Self, FormatError> {
        let shape = Shape::try_new(array.shape())?;
        match array.to_slice() {
            Some(values) => DenseView::new(shape, values),
            None => Err(FormatError::Layout {
                array: "an `ndarray` view",
                reason: "it is not row major and contiguous: copy it with `.as_standard_layout()` first",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, s};

    fn matrix() -> Array2<f32> {
        Array2::from_shape_fn((3, 4), |(i, j)| (4 * i + j) as f32)
    }

    #[test]
    fn buffers_are_moved_not_copied() {
        let theirs = matrix();
        let buffer = theirs.as_ptr();
        let ours = Dense::try_from(theirs).unwrap();
        assert_eq!((ours.shape()[..].to_vec(), ours.values().as_ptr()), (vec![3, 4], buffer));
        let back = ArrayD::try_from(ours).unwrap();
        assert_eq!((back.as_ptr(), back), (buffer, matrix().into_dyn()));
    }

    #[test]
    fn other_layouts_are_copied_when_owned_and_refused_when_borrowed() {
        let columns = matrix().reversed_axes();
        assert_eq!(
            DenseView::try_from(columns.view()).unwrap_err().to_string(),
            "cannot borrow an `ndarray` view: it is not row major and contiguous: copy it with \
             `.as_standard_layout()` first"
        );
        let ours = Dense::try_from(columns.clone()).unwrap();
        assert_eq!(ours.row(1), Some(&[1.0, 5.0, 9.0][..]));
        // in standard layout, but a part of its buffer
        let tail = matrix().slice_move(s![1..2, ..]);
        assert_eq!(Dense::try_from(tail).unwrap(), Dense::from_rows(&[[4.0, 5.0, 6.0, 7.0]]));
    }

    #[test]
    fn views_share_memory() {
        let theirs = matrix();
        let rows = DenseView::try_from(theirs.slice(s![1.., ..])).unwrap();
        assert_eq!((rows.shape()[0], rows.values().as_ptr()), (2, theirs.row(1).as_ptr()));
        let back = ArrayViewD::try_from(rows).unwrap();
        assert_eq!(back, theirs.slice(s![1.., ..]).into_dyn());
    }

    #[test]
    fn extents_beyond_either_side_are_errors() {
        let deep = ArrayD::<f32>::zeros(IxDyn(&[1; 7]));
        assert_eq!(Dense::try_from(deep), Err(FormatError::RankTooHigh { rank: 7 }));
        let wide = DenseView::<f32>::new([0, usize::MAX], &[]).unwrap();
        assert!(matches!(ArrayViewD::try_from(wide), Err(FormatError::TooLarge { .. })));
    }
}
