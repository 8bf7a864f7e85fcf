//! The settings and the start of a run, which every worker has.

use crate::schedule::Schedule;
use crate::training::checkpoint::Run;
use nnz_arrays::kernels::Parallel;
use nnz_data::BatchOptions;
use nnz_step::optimizer::{ParameterSpec, TableState};
use sparse_core::element::Float;

/// The work of every worker.
pub(super) struct Job<R, T: Float> {
    pub(super) rule: R,
    /// The settings of its updater, by name.
    pub(super) updater_settings: Vec<(String, String)>,
    pub(super) specs: Vec<ParameterSpec>,
    /// The position of the run; within it, if it is resumed.
    pub(super) begun: Run,
    /// The saved values of each parameter of a resumed run, none for frozen ones. A new run has no
    /// list.
    pub(super) tables: Vec<Option<TableState<T>>>,
    pub(super) options: BatchOptions,
    /// The bound on the norm of the gradients of each step, of all parameters together.
    pub(super) clip_norm: Option<f64>,
    pub(super) schedule: Schedule,
    pub(super) epochs: u64,
    pub(super) leaves: usize,
    pub(super) parallel: Parallel,
}
