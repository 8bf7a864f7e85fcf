//! Arrays of any storage as one type, and copies from one storage into another.

use super::{Csr, CsrView, Dense, DenseView, FormatError, RowSparse, RowSparseView, Shape};
use sparse_core::element::Element;
use sparse_core::storage::Storage;

/// A borrowed array whose storage type is known at run time.
///
/// ```
/// use nnz::formats::{AnyView, Csr, Dense};
/// let (dense, csr) = (Dense::<f32>::ones([2, 3]), Csr::zeros(4, 3));
/// let arrays: [AnyView<'_>; 2] = [(&dense).into(), (&csr).into()];
/// let sizes = arrays.map(|array| (array.stype().name(), array.shape()[0]));
/// assert_eq!(sizes, [("dense", 2), ("csr", 4)]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnyView<'a, T: Element = f32> {
    /// A dense array.
    Dense(DenseView<'a, T>),
    /// A csr matrix.
    Csr(CsrView<'a, T>),
    /// A row_sparse array.
    RowSparse(RowSparseView<'a, T>),
}

/// Runs `$body` with `$array` bound to the view, whatever its storage.
macro_rules! with_view {
    ($any:expr, |$array:ident| $body:expr) => {
        match $any {
            AnyView::Dense($array) => $body,
            AnyView::Csr($array) => $body,
            AnyView::RowSparse($array) => $body,
        }
    };
}

impl<T: Element> AnyView<'_, T> {
    /// The storage type.
    pub fn stype(&self) -> Storage {
        match self {
            AnyView::Dense(_) => Storage::Dense,
            AnyView::Csr(_) => Storage::Csr,
            AnyView::RowSparse(_) => Storage::RowSparse,
        }
    }

    /// The extents.
    pub fn shape(&self) -> Shape {
        match self {
            AnyView::Dense(array) => array.shape,
            AnyView::Csr(array) => array.shape(),
            AnyView::RowSparse(array) => array.shape,
        }
    }

    /// As a dense array.
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLarge`] if it cannot be addressed, [`FormatError::OutOfMemory`].
    pub fn to_dense(&self) -> Result<Dense<T>, FormatError> {
        with_view!(self, |array| array.to_dense())
    }

    /// As a csr matrix.
    ///
    /// # Errors
    ///
    /// [`FormatError::Rank`] unless the rank is 2, [`FormatError::OutOfMemory`].
    pub fn to_csr(&self) -> Result<Csr<T>, FormatError> {
        with_view!(self, |array| array.to_csr())
    }

    /// As a row_sparse array.
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLarge`] if the stored rows cannot be addressed,
    /// [`FormatError::OutOfMemory`].
    pub fn to_row_sparse(&self) -> Result<RowSparse<T>, FormatError> {
        with_view!(self, |array| array.to_row_sparse())
    }
}

macro_rules! copies {
    ($($array:ident $view:ident: $($source:ident $assign:ident $fallible:ident),*;)*) => {
        $(impl<'a, T: Element> From<$view<'a, T>> for AnyView<'a, T> {
            fn from(array: $view<'a, T>) -> Self {
                AnyView::$array(array)
            }
        }

        impl<'a, T: Element> From<&'a $array<T>> for AnyView<'a, T> {
            fn from(array: &'a $array<T>) -> Self {
                AnyView::$array(array.view())
            }
        }

        impl<T: Element> $array<T> {
            /// Takes the values of another array of the same shape, of whatever storage type: they
            /// are converted, this array keeps its own. What is stored afterwards is what a
            /// conversion of the source stores. Reuses the array's memory.
            ///
            /// # Errors
            ///
            /// [`FormatError::Mismatch`] for another shape; [`FormatError::OutOfMemory`]. The array
            /// is then as before.
            pub fn copy_from<'a>(&mut self, source: impl Into<AnyView<'a, T>>) -> Result<(), FormatError> {
                let source = source.into();
                let (target, given) = (AnyView::from(&*self).shape(), source.shape());
                if target != given {
                    let message = format!("the target has shape {target}, but the source {given}");
                    return Err(FormatError::Mismatch { operation: "copy_from", message });
                }
                match source {
                    $(AnyView::$source(source) => copies!(@call $fallible self.$assign(source)),)*
                }
                Ok(())
            }
        })*
    };
    (@call fallible $call:expr) => { $call? };
    (@call infallible $call:expr) => { $call };
}

copies! {
    Dense DenseView:
        Dense assign_dense infallible, Csr assign_csr fallible, RowSparse assign_row_sparse fallible;
    Csr CsrView:
        Dense assign_dense fallible, Csr assign_csr infallible, RowSparse assign_row_sparse fallible;
    RowSparse RowSparseView:
        Dense assign_dense infallible, Csr assign_csr fallible, RowSparse try_assign_row_sparse fallible;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_converted_and_the_storage_stays() {
        let dense = Dense::from_rows(&[[0.0f32, 1.0], [0.0, 0.0], [2.0, 0.0]]);
        let (csr, rows) = (dense.to_csr().unwrap(), dense.to_row_sparse().unwrap());
        let sources: [AnyView<'_>; 3] = [(&dense).into(), (&csr).into(), (&rows).into()];
        for source in sources {
            let mut target = Dense::full([3, 2], 9.0);
            target.copy_from(source).unwrap();
            assert_eq!(target, dense);
            let mut target = Csr::from_coo(3, 2, [(1, 1, 9.0)]).unwrap();
            target.copy_from(source).unwrap();
            assert_eq!(target, csr);
            let mut target = RowSparse::from_rows(3, [(1, [9.0, 9.0])]).unwrap();
            target.copy_from(source).unwrap();
            assert_eq!(target, rows);
            assert_eq!(source.to_dense().unwrap(), dense);
            assert_eq!(source.to_csr().unwrap(), csr);
            assert_eq!(source.to_row_sparse().unwrap(), rows);
        }
    }

    #[test]
    fn another_shape_is_an_error() {
        let mut target = Csr::from_coo(3, 2, [(1, 1, 9.0f32)]).unwrap();
        let before = target.clone();
        let error = target.copy_from(&Dense::ones([2, 3])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "copy_from: the target has shape [3, 2], but the source [2, 3]"
        );
        assert!(target.copy_from(&RowSparse::zeros([3, 2, 1])).is_err());
        assert_eq!(target, before);
        let mut cube = RowSparse::<f64>::zeros([2, 1, 2]);
        cube.copy_from(&Dense::ones([2, 1, 2])).unwrap();
        assert_eq!(cube.n_stored(), 2);
    }
}
