//! Arrays as arguments of kernels.

use super::CudaColumnIdsSlice;
use crate::device::cuda::{Cuda, CudaSlice};
use crate::formats::{CsrView, IdsView, RowSparseView};
use nnz_device::cuda::Launch;
use sparse_core::element::{Element, Stored};

/// Arguments of a kernel that are arrays, or parts of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` takes no arrays as arguments",
    note = "a `Launch` of a kernel does"
)]
pub trait ArrayArguments: Sized {
    /// The address of ids, for a record.
    fn address_of_ids(&mut self, ids: IdsView<'_, Cuda>) -> u64;

    /// The address of column ids, for a record.
    fn address_of_columns(&mut self, columns: CudaColumnIdsSlice<'_>) -> u64;

    /// Columns that the kernel reads, of either width.
    fn columns(self, columns: CudaColumnIdsSlice<'_>) -> Self;

    /// Columns that the kernel writes, of either width.
    fn writes_columns(self, columns: CudaColumnIdsSlice<'_>) -> Self;

    /// Ids that the kernel reads, of any type.
    fn ids(self, ids: IdsView<'_, Cuda>) -> Self;

    /// Rows of a csr: where they start and end, their columns and values.
    fn csr<V: Stored>(self, x: CsrView<'_, V, Cuda>) -> Self;

    /// No csr, in its place.
    fn no_csr<V: Stored>(self) -> Self;

    /// Rows that are looked up by number: the numbers of those that are stored, nothing where all
    /// are, how many they are, and their values.
    fn rows<T: Element>(self, x: RowSparseView<'_, T, Cuda>) -> Self;
}

impl ArrayArguments for Launch<'_> {
    fn address_of_ids(&mut self, ids: IdsView<'_, Cuda>) -> u64 {
        match ids {
            IdsView::U32(ids) => self.address(ids.values()),
            IdsView::U64(ids) => self.address(ids.values()),
            IdsView::I64(ids) => self.address(ids.values()),
        }
    }

    fn address_of_columns(&mut self, columns: CudaColumnIdsSlice<'_>) -> u64 {
        match columns {
            CudaColumnIdsSlice::U32(ids) => self.address(ids),
            CudaColumnIdsSlice::U64(ids) => self.address(ids),
        }
    }

    fn columns(self, columns: CudaColumnIdsSlice<'_>) -> Self {
        match columns {
            CudaColumnIdsSlice::U32(ids) => self.reads(ids),
            CudaColumnIdsSlice::U64(ids) => self.reads(ids),
        }
    }

    fn writes_columns(self, columns: CudaColumnIdsSlice<'_>) -> Self {
        match columns {
            CudaColumnIdsSlice::U32(ids) => self.writes(ids),
            CudaColumnIdsSlice::U64(ids) => self.writes(ids),
        }
    }

    fn ids(self, ids: IdsView<'_, Cuda>) -> Self {
        match ids {
            IdsView::U32(ids) => self.reads(ids.values()),
            IdsView::U64(ids) => self.reads(ids.values()),
            IdsView::I64(ids) => self.reads(ids.values()),
        }
    }

    fn csr<V: Stored>(self, x: CsrView<'_, V, Cuda>) -> Self {
        self.reads(x.starts()).reads(x.ends()).columns(x.columns()).reads(x.values())
    }

    fn no_csr<V: Stored>(self) -> Self {
        let nothing = CudaSlice::<u64>::default();
        let launch = self.reads(nothing).reads(nothing).reads(CudaSlice::<u32>::default());
        launch.reads(CudaSlice::<V>::default())
    }

    fn rows<T: Element>(self, x: RowSparseView<'_, T, Cuda>) -> Self {
        let (ids, n_stored) = x.stored_on_gpu();
        self.reads(ids).size(n_stored).reads(x.values())
    }
}
