//! How a result gets its place in the memory of a GPU: from the pattern of an operand, or from the
//! rows that it stores.

use crate::device::cuda::{Cuda, CudaError, CudaSlice, Destination, Gpu};
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView, Shape};
use sparse_core::element::Element;

/// A view of an array on a GPU whose pattern a result may have: its extents, and which elements are
/// stored.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array of `{T}` on a GPU",
    note = "kernels of a GPU take views of arrays that were moved there by `to_gpu`"
)]
pub trait Pattern<T: Element>: Copy {
    /// What stores elements so.
    #[allow(private_bounds, reason = "what a failed kernel leaves is the library's business")]
    type Array: Destination;

    /// The stored elements.
    fn stored(&self) -> CudaSlice<'_, T>;

    /// Gives the pattern to an array, whose elements are to be written.
    #[doc(hidden)]
    fn give<'o>(&self, gpu: &Gpu, out: &'o mut Self::Array) -> Result<CudaSlice<'o, T>, CudaError>;
}

macro_rules! patterns {
    ($($View:ident $Array:ident),*) => {
        $(impl<T: Element> Pattern<T> for $View<'_, T, Cuda> {
            type Array = $Array<T, Cuda>;

            fn stored(&self) -> CudaSlice<'_, T> {
                self.values()
            }

            fn give<'o>(
                &self,
                gpu: &Gpu,
                out: &'o mut $Array<T, Cuda>,
            ) -> Result<CudaSlice<'o, T>, CudaError> {
                out.take_pattern(gpu, *self)
            }
        })*
    };
}

patterns!(DenseView Dense, CsrView Csr, RowSparseView RowSparse);

/// An array on a GPU that may be the result of a kernel which makes some rows: all others are zero.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array of rows of `{T}` on a GPU",
    note = "rows are stored by `RowSparse<{T}, Cuda>`, and with all others by `Dense<{T}, Cuda>`"
)]
#[allow(private_bounds, reason = "what a failed kernel leaves is the library's business")]
pub trait Rows<T: Element>: Destination {
    /// Takes a shape and room for these rows, ascending. Returns the memory and in which row of it
    /// each is to be written; nothing where they are one after the other.
    #[doc(hidden)]
    fn make_room<'o>(
        &'o mut self,
        gpu: &Gpu,
        shape: Shape,
        rows: CudaSlice<'o, u64>,
    ) -> Result<(CudaSlice<'o, T>, CudaSlice<'o, u64>), CudaError>;
}

impl<T: Element> Rows<T> for RowSparse<T, Cuda> {
    fn make_room<'o>(
        &'o mut self,
        gpu: &Gpu,
        shape: Shape,
        rows: CudaSlice<'o, u64>,
    ) -> Result<(CudaSlice<'o, T>, CudaSlice<'o, u64>), CudaError> {
        Ok((self.store_rows(gpu, shape, rows)?, CudaSlice::default()))
    }
}

impl<T: Element> Rows<T> for Dense<T, Cuda> {
    fn make_room<'o>(
        &'o mut self,
        gpu: &Gpu,
        shape: Shape,
        rows: CudaSlice<'o, u64>,
    ) -> Result<(CudaSlice<'o, T>, CudaSlice<'o, u64>), CudaError> {
        Ok((self.zeros_on(gpu, shape)?, rows))
    }
}
