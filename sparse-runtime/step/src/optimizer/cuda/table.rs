//! A parameter on a GPU, and the states that updaters keep beside it.

use super::STATES;
use super::lazy_rows::LazyRows;
use super::norms::Norms;
use nnz_arrays::device::cuda::{Cuda, CudaBuffer, Gpu};
use nnz_arrays::formats::Dense;
use nnz_arrays::kernels::cuda::GpuFloat;
use nnz_arrays::parameter_memory::{Owner, Tenant};
use nnz_optim::MOST_NUMBERS;

/// The weights of a parameter on a GPU, with the states that an updater left beside them.
#[derive(Debug)]
pub struct CudaTable<T: GpuFloat> {
    /// The weights.
    pub weights: Dense<T, Cuda>,
    /// What the updater has beside them that made the last step.
    pub(super) beside: UpdaterArrays<T>,
    /// What others have, which made steps before it and may go on.
    parked: Vec<UpdaterArrays<T>>,
    /// A gradient of all rows, of a mode that updates all.
    pub(super) whole: Dense<T, Cuda>,
    /// Of a rule whose steps depend on norms of the whole parameter.
    pub(super) norms: Norms,
}

/// What an updater keeps beside weights on a GPU.
#[derive(Debug)]
pub(super) struct UpdaterArrays<T: GpuFloat> {
    /// Whose it is; nobody's where it has been taken back.
    pub(super) owner: Option<Owner>,
    /// Block after block, in the order of
    /// [`StateBlock::values`](nnz_optim::StateBlock::values); none where no rule
    /// has asked for them.
    pub(super) states: CudaBuffer<T>,
    /// The step that all rows have made, of a rule whose idle steps forget those before.
    pub(super) settled: Option<[f64; MOST_NUMBERS]>,
    /// Of rows that wait for idle steps: what they have missed.
    pub(super) lazy_rows: LazyRows,
}

impl<T: GpuFloat> Default for UpdaterArrays<T> {
    fn default() -> Self {
        let (states, lazy_rows) = (CudaBuffer::default(), LazyRows::default());
        UpdaterArrays { owner: None, states, settled: None, lazy_rows }
    }
}

impl<T: GpuFloat> UpdaterArrays<T> {
    fn is_of(&self, tenant: &Tenant) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.is(tenant))
    }

    /// Whether somebody may go on with it.
    fn is_wanted(&self) -> bool {
        self.owner.as_ref().is_some_and(Owner::is_there)
    }

    /// A copy. What cannot be copied is reported by the next synchronisation, and stores nothing.
    fn copy(&self, gpu: &Gpu) -> Self {
        let mut states = CudaBuffer::default();
        gpu.attempt(&mut states, |states| states.assign(gpu, self.states.as_slice(), STATES));
        let (owner, lazy_rows) = (self.owner.clone(), self.lazy_rows.copy(gpu));
        UpdaterArrays { owner, states, settled: self.settled, lazy_rows }
    }
}

/// No weights.
impl<T: GpuFloat> Default for CudaTable<T> {
    fn default() -> Self {
        CudaTable::new(Dense::default())
    }
}

impl<T: GpuFloat> CudaTable<T> {
    /// A copy. What cannot be copied is reported by the next synchronisation, and stores nothing.
    pub(crate) fn copy(&self, gpu: &Gpu) -> Self {
        let mut copy = CudaTable::new(Dense::default());
        gpu.attempt(&mut copy.weights, |weights| {
            weights.assign_on(gpu, *self.weights.shape(), self.weights.view().values())
        });
        let parked = self.parked.iter().filter(|of| of.is_wanted()).map(|of| of.copy(gpu));
        CudaTable { beside: self.beside.copy(gpu), parked: parked.collect(), ..copy }
    }

    /// Makes what an updater has beside the weights that of the next step. False where it has
    /// nothing.
    pub(super) fn turn_to(&mut self, tenant: &Tenant) -> bool {
        if self.beside.is_of(tenant) {
            return true;
        }
        let known = self.parked.iter().position(|of| of.is_of(tenant));
        if let Some(position) = known {
            std::mem::swap(&mut self.parked[position], &mut self.beside);
            self.parked.retain(UpdaterArrays::is_wanted);
        }
        known.is_some()
    }

    /// Keeps what is beside the weights for the updater that it is of, if there is one.
    pub(super) fn park(&mut self) {
        self.parked.retain(UpdaterArrays::is_wanted);
        if self.beside.is_wanted() {
            self.parked.push(std::mem::take(&mut self.beside));
        }
    }

    /// These weights, without states.
    pub fn new(weights: Dense<T, Cuda>) -> Self {
        CudaTable {
            weights,
            beside: UpdaterArrays::default(),
            parked: Vec::new(),
            whole: Dense::default(),
            norms: Norms::default(),
        }
    }
}
