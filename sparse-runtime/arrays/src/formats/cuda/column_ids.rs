//! Column ids on a GPU, of the width that the number of columns asks for.

use crate::formats::{ColumnIds, ColumnIdsView};
use nnz_device::cuda::{CudaBuffer, CudaError, CudaSlice, Gpu};
use sparse_core::storage::ElementType;

/// Owned column ids on a GPU.
#[derive(Debug)]
pub enum CudaColumnIds {
    /// For widths up to 2³².
    U32(CudaBuffer<u32>),
    /// For wider arrays.
    U64(CudaBuffer<u64>),
}

/// Borrowed column ids on a GPU.
#[derive(Clone, Copy, Debug)]
pub enum CudaColumnIdsSlice<'a> {
    /// For widths up to 2³².
    U32(CudaSlice<'a, u32>),
    /// For wider arrays.
    U64(CudaSlice<'a, u64>),
}

const COLUMN_IDS: &str = "the column ids of a csr";

impl CudaColumnIds {
    /// A copy on the host, when everything asked for before is done.
    ///
    /// # Errors
    ///
    /// As [`Gpu::synchronize`].
    pub fn to_host(&self) -> Result<ColumnIds, CudaError> {
        Ok(match self {
            CudaColumnIds::U32(ids) => ColumnIds::U32(ids.to_host()?),
            CudaColumnIds::U64(ids) => ColumnIds::U64(ids.to_host()?),
        })
    }

    /// Borrowed.
    pub fn as_slice(&self) -> CudaColumnIdsSlice<'_> {
        match self {
            CudaColumnIds::U32(ids) => CudaColumnIdsSlice::U32(ids.as_slice()),
            CudaColumnIds::U64(ids) => CudaColumnIdsSlice::U64(ids.as_slice()),
        }
    }

    /// Becomes a copy of ids of the host.
    pub fn assign_from_host(
        &mut self,
        gpu: &Gpu,
        from: ColumnIdsView<'_>,
    ) -> Result<(), CudaError> {
        match from {
            ColumnIdsView::U32(ids) => self.narrow().assign_from_host(gpu, ids, COLUMN_IDS),
            ColumnIdsView::U64(ids) => self.wide().assign_from_host(gpu, ids, COLUMN_IDS),
        }
    }

    /// Takes a number of ids, of the width that a number of columns asks for, to be written.
    pub fn resize_for_overwrite(
        &mut self,
        gpu: &Gpu,
        len: usize,
        n_cols: usize,
    ) -> Result<(), CudaError> {
        if crate::formats::fits_u32(n_cols) {
            self.narrow().resize_for_overwrite(gpu, len, COLUMN_IDS)
        } else {
            self.wide().resize_for_overwrite(gpu, len, COLUMN_IDS)
        }
    }

    /// Becomes a copy of ids on the same GPU.
    pub fn assign(&mut self, gpu: &Gpu, from: CudaColumnIdsSlice<'_>) -> Result<(), CudaError> {
        match from {
            CudaColumnIdsSlice::U32(from) => self.narrow().assign(gpu, from, COLUMN_IDS),
            CudaColumnIdsSlice::U64(from) => self.wide().assign(gpu, from, COLUMN_IDS),
        }
    }

    /// Ids of 32 bits: new ones where they are of 64.
    fn narrow(&mut self) -> &mut CudaBuffer<u32> {
        if let CudaColumnIds::U64(_) = self {
            *self = CudaColumnIds::U32(CudaBuffer::default());
        }
        match self {
            CudaColumnIds::U32(ids) => ids,
            CudaColumnIds::U64(_) => unreachable!(),
        }
    }

    /// Ids of 64 bits: new ones where they are of 32.
    fn wide(&mut self) -> &mut CudaBuffer<u64> {
        if let CudaColumnIds::U32(_) = self {
            *self = CudaColumnIds::U64(CudaBuffer::default());
        }
        match self {
            CudaColumnIds::U64(ids) => ids,
            CudaColumnIds::U32(_) => unreachable!(),
        }
    }
}

impl CudaColumnIdsSlice<'_> {
    /// The type of an id, as texts of kernels call it.
    pub fn type_name(&self) -> &'static str {
        match self {
            CudaColumnIdsSlice::U32(_) => ElementType::U32.name(),
            CudaColumnIdsSlice::U64(_) => ElementType::U64.name(),
        }
    }

    /// The number of ids.
    pub fn len(&self) -> usize {
        match self {
            CudaColumnIdsSlice::U32(ids) => ids.len(),
            CudaColumnIdsSlice::U64(ids) => ids.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// None.
impl Default for CudaColumnIds {
    fn default() -> Self {
        CudaColumnIds::U32(CudaBuffer::default())
    }
}
