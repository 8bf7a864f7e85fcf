//! The extents of an array, whatever its storage.

use super::{Csr, CsrView, Dense, DenseView, Ids, IdsView, RowSparse, RowSparseView, Shape};
use sparse_core::element::{Element, Stored};

/// An array or a view of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no extents",
    note = "arrays, their views and ids have: `Dense`, `Csr`, `RowSparse`"
)]
pub trait Extents {
    /// The extents.
    fn extents(&self) -> Shape;
}

macro_rules! extents {
    ($($array:ty),*; $($matrix:ty),*; $($ids:ty),*) => {
        $(impl<T: Element> Extents for $array {
            #[inline]
            fn extents(&self) -> Shape {
                *self.shape()
            }
        })*
        $(impl<T: Stored> Extents for $matrix {
            #[inline]
            fn extents(&self) -> Shape {
                [self.n_rows(), self.n_cols()].into()
            }
        })*
        $(impl Extents for $ids {
            #[inline]
            fn extents(&self) -> Shape {
                *self.shape()
            }
        })*
    };
}

extents!(
    Dense<T>, DenseView<'_, T>, RowSparse<T>, RowSparseView<'_, T>;
    Csr<T>, CsrView<'_, T>;
    Ids, IdsView<'_>
);
