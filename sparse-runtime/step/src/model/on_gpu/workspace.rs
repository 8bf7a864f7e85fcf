//! The arrays that a program reads and writes, and the purposes that values are computed for.

use super::batches::Batches;
use crate::optimizer::cuda::{CudaSamples, CudaTable};
use nnz_arrays::device::cuda::{Cuda, CudaBuffer};
use nnz_arrays::formats::IdsView;
use nnz_arrays::kernels::cuda::GpuFloat;
use nnz_arrays::kernels::cuda::occurrences::Occurrences;
use nnz_arrays::kernels::cuda::table::{GpuArray, GpuOperand};

/// What of a model is asked for: some of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted(u8);

impl Wanted {
    pub(super) const NOTHING: Wanted = Wanted(0);
    pub(super) const OUTPUTS: Wanted = Wanted(1);
    pub(super) const LOSS: Wanted = Wanted(2);
    /// The gradients, but for those that are [`SUMS`](Wanted::SUMS), of which only the operands.
    pub(super) const GRADIENTS: Wanted = Wanted(4);
    /// The gradients that an update may do without.
    pub(super) const SUMS: Wanted = Wanted(8);

    /// Both.
    pub(super) const fn and(self, other: Wanted) -> Wanted {
        Wanted(self.0 | other.0)
    }

    /// Whether they have something in common.
    pub(super) const fn meets(self, other: Wanted) -> bool {
        self.0 & other.0 != 0
    }
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// In the batch, by position.
    Input(usize),
    /// A parameter, by position.
    Parameter(usize),
    /// In the workspace.
    Slot(usize),
    /// In the call.
    Number(f64),
}

/// The memory of what names rows, and of what sums over them read.
#[derive(Debug)]
pub(super) struct NamedRowsMemory {
    /// Which rows each source names, and where.
    pub(super) occurrences: Vec<Occurrences>,
    /// Of gradients of means, what the entries of each bag are multiplied by.
    pub(super) shares: Vec<CudaBuffer<f64>>,
}

/// The arrays that a program reads and writes.
#[derive(Debug)]
pub(super) struct Workspace<T: GpuFloat> {
    pub(super) batches: Batches<T>,
    pub(super) tables: Vec<CudaTable<T>>,
    pub(super) slots: Vec<GpuArray<T>>,
    /// The rows that the batch names.
    pub(super) named: NamedRowsMemory,
    /// The sums that a gradient of interactions reads which is not made.
    pub(super) factor_sums: CudaBuffer<f64>,
    /// What is kept of each sample.
    pub(super) samples: CudaSamples<T>,
}

impl<T: GpuFloat> Workspace<T> {
    pub(super) fn ids(&self, place: Place) -> Option<IdsView<'_, Cuda>> {
        match self.operand(place)? {
            GpuOperand::Ids(ids) => Some(ids),
            _ => None,
        }
    }

    pub(super) fn operand(&self, place: Place) -> Option<GpuOperand<'_, T>> {
        match place {
            Place::Input(index) => self.batches.operand(index),
            Place::Parameter(index) => {
                Some(GpuOperand::Dense(self.tables.get(index)?.weights.view()))
            }
            Place::Slot(index) => self.slots.get(index).map(GpuArray::operand),
            Place::Number(number) => Some(GpuOperand::Number(number)),
        }
    }
}
