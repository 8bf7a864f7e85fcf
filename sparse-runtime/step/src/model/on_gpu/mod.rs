//! Models on a GPU: the plan of `graph!`, launched there value by value.

mod batches;
mod corrected;
mod demand;
mod difference;
mod fused;
mod in_place;
mod losses;
mod outputs;
mod plan_search;
mod program;
pub(crate) mod rows;
mod step;
mod workspace;

use super::{
    BatchSource, Dims, InputInfo, InputView, Model, ModelError, OutputInfo, ParameterInfo,
    ParameterMut, ParameterRef, Plan, Scores,
};
use crate::error::{Error, Result};
use crate::optimizer::Updater;
use crate::optimizer::cuda::CudaTable;
use losses::Losses;
use nnz_arrays::device::cuda::{CudaError, Gpu};
use nnz_arrays::formats::{CsrView, Dense, DenseView, Ids, RowSparseView};
use nnz_arrays::kernels::Array;
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat};
use nnz_device::cuda::Replay;
use nnz_optim::UpdateRule;
use outputs::{Evaluations, Outputs};
use program::Program;
use step::StepRequest;
use workspace::{Wanted, Workspace};

/// Visits every text that steps on a GPU compile, fused steps of models and updates of rules, with
/// one of each kind of words. A GPU compiles only what a program uses.
///
/// ```
/// use nnz::model::for_each_unit;
/// let mut found = 0;
/// for_each_unit(&mut |unit| found += usize::from(unit.file.ends_with(".cu")));
/// assert!(found > 50);
/// ```
pub fn for_each_unit(visit: &mut dyn FnMut(&nnz_device::cuda::Unit<'_>)) {
    rows::for_each_unit(visit);
    crate::optimizer::cuda::for_each_unit(visit);
}

/// A model whose parameters are on a GPU, which computes its batches: a [`Model`] like the
/// original, for the same trainer.
///
/// A batch is copied there as one block from pinned memory, beside the computation. There are two
/// blocks. `fit_epoch` and the trainer copy the next batch while
/// a step computes ([`take_batch`](Model::take_batch)); in your own loop a batch is copied during
/// the update of the previous step. Each block grows to the largest batch so far: steps allocate
/// nothing on the GPU once both have seen it. Without enough memory, the step fails with
/// [`CudaError::OutOfMemory`] and the model is unchanged.
///
/// A value of the [plan](Model::PLAN) is a launch of a kernel, except in steps of models that are
/// not `fuse = off`:
///
/// - The scores, the loss and the derivatives are one kernel for generalised linear models,
///   factorization machines, sums of lookups (matrix factorization), and models whose samples go
///   through dense layers of constant extents (wide & deep; at most 4096 elements).
/// - In any model, a gradient that is a sum over samples which name table rows (csrᵀ · dense, of
///   bags, of lookups by ids) ends in the update without being made. Exceptions are gradients whose
///   norm is needed, and rules with a state of whole rows.
///
/// Such a step waits for nothing: only the GPU knows how many table rows its batch names.
/// [`train_step`](Model::train_step) and [`step_on_taken`](Model::step_on_taken) wait for the loss
/// that they return, and for no more. After [`begin_step_on_taken`](Model::begin_step_on_taken),
/// which the training loop calls where nothing observes a step, the loss is waited for when it is
/// [read](Model::late_losses). Evaluation and predictions of the training library have a batch
/// copied and computed while the previous one is [read](Model::begin_evaluation). The next call
/// that waits reports failures of a step on the GPU.
///
/// The launches of a step up to its loss, and those after it, are CUDA graphs if their kernels are
/// those of the previous step. If the driver [refuses](Gpu::graphs_refused) graphs, launches are
/// made one by one, with the same results.
///
/// Table rows that miss steps ([`LazyUpdate::Exact`](nnz_optim::LazyUpdate::Exact))
/// wait on the GPU; the rows that a batch names are caught up before a step reads them.
///
/// Parameters and states come back to the host where training costs O(values) anyway: at the end of
/// an epoch, and where a callback reads them. [`parameters`](Model::parameters) are those of that
/// time, so that checkpoints are written as for any model.
///
/// ```
/// use nnz::device::cuda::Gpu;
/// use nnz::kernels::cuda::GpuFloat;
/// use nnz::model::{Model, OnGpu};
///
/// /// The loss of a batch, computed on the first GPU.
/// fn loss<M: Model<Element: GpuFloat>>(
///     model: &M,
///     batch: &M::Batch<'_>,
/// ) -> nnz::Result<f64> {
///     OnGpu::new(model, &Gpu::open(0)?)?.loss(batch)
/// }
/// ```
#[derive(Debug)]
pub struct OnGpu<M: Model<Element: GpuFloat>> {
    host: M,
    program: Program<M::Element>,
    workspace: Workspace<M::Element>,
    context: CudaContext,
    outputs: Outputs<M::Element>,
    /// Batches under evaluation while others are copied.
    evaluations: Evaluations<M::Element>,
    losses: Losses<M::Element>,
    /// The launches of a step up to its loss, and those after it, of batches in either block.
    replays: [[Replay; 2]; 2],
    /// Whether the outputs on the host are older than the last batch.
    outputs_are_late: bool,
    newest: Newest,
    /// The reason why parameters could not be brought back, for the next call that can report it.
    failure: Option<Error>,
}

/// The place of the newest weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Newest {
    Host,
    Gpu,
    Both,
}

const LOSS: Wanted = Wanted::OUTPUTS.and(Wanted::LOSS);
const ALL: Wanted = LOSS.and(Wanted::GRADIENTS).and(Wanted::SUMS);

impl<M: Model<Element: GpuFloat>> OnGpu<M> {
    /// A copy of a model on a GPU, with a copy on the host as well. O(values of its parameters).
    ///
    /// A model with a value that no kernel of a GPU computes does not compile where this is called;
    /// the error names the kernel.
    ///
    /// # Errors
    ///
    /// [`ModelError::NotOnGpu`] for a model that writes states; [`CudaError::OutOfMemory`].
    pub fn new(model: &M, gpu: &Gpu) -> Result<Self> {
        const { demand::demand_kernels(&M::PLAN) };
        OnGpu::try_new(model, gpu)
    }

    /// Like [`new`](OnGpu::new), for code that is generic in a model which may stay on the host.
    ///
    /// # Errors
    ///
    /// [`ModelError::NotOnGpu`], naming the kernels of its plan that a GPU lacks;
    /// [`CudaError::OutOfMemory`].
    pub fn try_new(model: &M, gpu: &Gpu) -> Result<Self> {
        let program = Program::of::<M>()?;
        let tables = model
            .parameters()
            .iter()
            .map(|parameter| {
                let table = DenseView::new(parameter.shape, parameter.values())?;
                Ok(CudaTable::new(table.to_gpu(gpu)?))
            })
            .collect::<Result<_>>()?;
        Ok(OnGpu {
            workspace: program.workspace(tables),
            host: model.clone(),
            program,
            context: CudaContext::new(gpu),
            outputs: Outputs::new(M::OUTPUTS),
            evaluations: Evaluations::new(),
            losses: Losses::new(M::PLAN.losses.len()),
            replays: Default::default(),
            outputs_are_late: false,
            newest: Newest::Both,
            failure: None,
        })
    }

    /// The model, back on the host. O(values of its parameters).
    ///
    /// # Errors
    ///
    /// Failures of the GPU.
    pub fn into_host(mut self) -> Result<M> {
        self.weights_to_host()?;
        Ok(self.host)
    }

    /// The GPU.
    pub fn gpu(&self) -> &Gpu {
        self.context.gpu()
    }

    /// Output `index` of the last call that computed outputs, if it is positions or counts, copied
    /// to the host.
    pub fn ids_output(&self, index: usize) -> Option<DenseView<'_, u64>> {
        match self.outputs.others.get(index)? {
            Array::Ids(Ids::U64(ids)) => Some(ids.view()),
            _ => None,
        }
    }

    /// Output `index` of the last call that computed outputs, if it is csr, on the host: the
    /// entries that the GPU stored, never made dense.
    pub fn csr_output(&self, index: usize) -> Option<CsrView<'_, M::Element>> {
        match self.outputs.others.get(index)? {
            Array::Csr(csr) => Some(csr.view()),
            _ => None,
        }
    }

    /// Output `index` of the last call that computed outputs, if it is row_sparse, on the host: the
    /// rows that the GPU stored.
    pub fn row_sparse_output(&self, index: usize) -> Option<RowSparseView<'_, M::Element>> {
        match self.outputs.others.get(index)? {
            Array::RowSparse(rows) => Some(rows.view()),
            _ => None,
        }
    }

    /// The kernels by which the GPU computes the values of the plan, a line a value, then the fused
    /// kernels of a step; for values already computed also the kernels that were launched.
    ///
    /// ```text
    /// %4 = dot_csr_row_sparse: csr_column
    /// score = add_dense_dense: binary
    /// in a step: %4, score, %6, %7 = linear_rows: linear_rows, mean_of_parts
    /// in a step: grad w = the update
    /// ```
    pub fn kernels(&self) -> String {
        self.program.describe(&M::PLAN)
    }

    fn compute(&mut self, batch: &M::Batch<'_>, wanted: Wanted) -> Result<()> {
        self.load(batch, wanted.meets(Wanted::LOSS))?;
        self.run(wanted)
    }

    fn loss_of(&mut self, batch: &M::Batch<'_>, wanted: Wanted) -> Result<f64> {
        self.compute(batch, wanted)?;
        self.ask_for_loss()?;
        let loss = self.newest_loss()?;
        self.bring_outputs()?;
        Ok(loss)
    }

    /// Copies a batch to the GPU, for later computations.
    fn load(&mut self, batch: &M::Batch<'_>, labels: bool) -> Result<()> {
        self.check(batch, labels)?;
        let gpu = self.context.gpu();
        let copied = self.workspace.batches.read_now::<M>(gpu, batch);
        Ok(copied.map_err(|error| gpu.first_of(error))?)
    }

    /// A fault of a batch, or an earlier one.
    fn check(&mut self, batch: &M::Batch<'_>, labels: bool) -> Result<()> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.host.check_batch(batch, labels),
        }
    }

    /// Computes a loaded batch, with the parameters of the host if they were changed there.
    fn run(&mut self, wanted: Wanted) -> Result<()> {
        self.weights_to_gpu()?;
        self.program.run::<M>(&mut self.workspace, wanted, &mut self.context)
    }

    /// Copies parameters that were changed on the host to the GPU.
    fn weights_to_gpu(&mut self) -> Result<()> {
        if self.newest == Newest::Host {
            let gpu = self.context.gpu();
            let parameters = self.host.parameters();
            for (table, parameter) in self.workspace.tables.iter_mut().zip(&parameters) {
                let values = DenseView::new(parameter.shape, parameter.values())?;
                table.weights.assign_from_host(gpu, values)?;
            }
            self.newest = Newest::Both;
        }
        Ok(())
    }

    /// Requests the loss of the computed batch, and reports failures before it reached the GPU.
    fn ask_for_loss(&mut self) -> Result<()> {
        if M::PLAN.losses.is_empty() {
            return Err(ModelError::NoLoss { model: M::NAME }.into());
        }
        let gpu = self.context.gpu();
        gpu.check()?;
        let asked = self.losses.ask(gpu, self.program.loss(&M::PLAN, &self.workspace));
        Ok(asked.map_err(|error| gpu.first_of(error))?)
    }

    /// Waits for the last requested loss.
    fn newest_loss(&mut self) -> Result<f64> {
        let newest = self.losses.newest();
        Ok(newest.map_err(|error| self.context.gpu().first_of(error))?)
    }

    fn ask_for_outputs(&mut self) -> Result<(), CudaError> {
        let of = |name: &str| self.program.output(&M::PLAN, &self.workspace, name);
        let scores = self.program.scores::<M>(&self.workspace);
        self.outputs.ask(self.context.gpu(), M::OUTPUTS, of, scores)?;
        self.outputs_are_late = false;
        Ok(())
    }

    fn bring_outputs(&mut self) -> Result<()> {
        let brought = self.ask_for_outputs().and_then(|()| self.outputs.wait());
        Ok(brought.map_err(|error| self.context.gpu().first_of(error))?)
    }

    fn weights_to_host(&mut self) -> Result<()> {
        if self.newest == Newest::Gpu {
            let parameters = self.host.parameters_mut();
            for (table, mut parameter) in self.workspace.tables.iter().zip(parameters) {
                parameter.values_mut().copy_from_slice(table.weights.to_cpu()?.values());
            }
            self.newest = Newest::Both;
        }
        Ok(())
    }
}

/// A separate model, on the same GPU. A failed copy is an error of the clone's next step.
impl<M: Model<Element: GpuFloat>> Clone for OnGpu<M> {
    fn clone(&self) -> Self {
        let gpu = self.context.gpu();
        let tables = self.workspace.tables.iter().map(|table| table.copy(gpu)).collect();
        let mut workspace = self.program.workspace(tables);
        workspace.samples = self.workspace.samples.copy(gpu);
        OnGpu {
            host: self.host.clone(),
            workspace,
            program: self.program.clone(),
            context: CudaContext::new(gpu),
            outputs: self.outputs.copy(),
            evaluations: Evaluations::new(),
            losses: Losses::new(M::PLAN.losses.len()),
            replays: Default::default(),
            outputs_are_late: self.outputs_are_late,
            newest: self.newest,
            failure: None,
        }
    }
}

impl<M: Model<Element: GpuFloat>> Model for OnGpu<M> {
    type Element = M::Element;
    type Batch<'a> = M::Batch<'a>;
    /// The dense ones, in the order of [`OUTPUTS`](Model::OUTPUTS), on the host. Others have no
    /// elements here; they are [`csr_output`](OnGpu::csr_output),
    /// [`row_sparse_output`](OnGpu::row_sparse_output) and [`ids_output`](OnGpu::ids_output).
    type Outputs = Vec<Dense<M::Element>>;
    /// They stay on the GPU.
    type Gradients = ();

    const NAME: &'static str = M::NAME;
    const PLAN: Plan = M::PLAN;
    const FINGERPRINT: u64 = M::FINGERPRINT;
    const INPUTS: &'static [InputInfo] = M::INPUTS;
    const PARAMETERS: &'static [ParameterInfo] = M::PARAMETERS;
    const OUTPUTS: &'static [OutputInfo] = M::OUTPUTS;
    const TAKES_BATCHES: bool = true;

    fn dims(&self) -> &Dims {
        self.host.dims()
    }

    fn bind<'a, S: BatchSource<'a, M::Element>>(&self, source: &S) -> Result<M::Batch<'a>> {
        self.host.bind(source)
    }

    fn input<'a>(batch: &M::Batch<'a>, index: usize) -> Option<InputView<'a, M::Element>> {
        M::input(batch, index)
    }

    fn check_batch(&self, batch: &M::Batch<'_>, labels: bool) -> Result<()> {
        self.host.check_batch(batch, labels)
    }

    fn forward(&mut self, batch: &M::Batch<'_>) -> Result<&Self::Outputs> {
        self.compute(batch, Wanted::OUTPUTS)?;
        self.bring_outputs()?;
        Ok(&self.outputs.dense)
    }

    /// As on the host, unless the derivatives by its scores are an output as well.
    fn corrects_scores(&self) -> bool {
        self.program.corrected().is_some()
    }

    fn loss(&mut self, batch: &M::Batch<'_>) -> Result<f64> {
        self.loss_of(batch, LOSS)
    }

    fn loss_and_grads(&mut self, batch: &M::Batch<'_>) -> Result<f64> {
        self.loss_of(batch, ALL)
    }

    fn outputs(&self) -> &Self::Outputs {
        &self.outputs.dense
    }

    fn gradients(&self) -> &() {
        &()
    }

    fn train_step<R: UpdateRule>(
        &mut self,
        batch: &M::Batch<'_>,
        updater: &mut Updater<R, M::Element>,
    ) -> Result<f64> {
        self.begin_step(updater, StepRequest::PLAIN, Some(batch), &mut |_| ())?;
        self.newest_loss()
    }

    fn clipped_step<R: UpdateRule>(
        &mut self,
        batch: &M::Batch<'_>,
        updater: &mut Updater<R, M::Element>,
        max_norm: f64,
    ) -> Result<f64> {
        let asked = StepRequest { max_norm: Some(max_norm), ..StepRequest::PLAIN };
        self.begin_step(updater, asked, Some(batch), &mut |_| ())?;
        self.newest_loss()
    }

    fn corrected_step<R: UpdateRule>(
        &mut self,
        batch: &M::Batch<'_>,
        updater: &mut Updater<R, M::Element>,
        snapshot: &mut Self,
    ) -> Result<f64> {
        // Nobody asks for its loss, nor waits for its gradients.
        snapshot.load(batch, true)?;
        snapshot.run(Wanted::GRADIENTS.and(Wanted::SUMS))?;
        let asked = StepRequest { less: Some(snapshot), ..StepRequest::PLAIN };
        self.begin_step(updater, asked, Some(batch), &mut |_| ())?;
        self.newest_loss()
    }

    fn take_batch(&mut self, batch: &M::Batch<'_>) -> Result<()> {
        self.check(batch, true)?;
        let gpu = self.context.gpu();
        let copied = self.workspace.batches.take::<M>(gpu, batch);
        Ok(copied.map_err(|error| gpu.first_of(error))?)
    }

    fn step_on_taken<R: UpdateRule>(
        &mut self,
        updater: &mut Updater<R, M::Element>,
        max_norm: Option<f64>,
        meanwhile: impl FnOnce(&mut Self),
    ) -> Result<f64> {
        let asked = StepRequest { max_norm, ..StepRequest::PLAIN };
        self.begin_step(updater, asked, None, &mut once(meanwhile))?;
        self.newest_loss()
    }

    fn begin_step_on_taken<R: UpdateRule>(
        &mut self,
        updater: &mut Updater<R, M::Element>,
        max_norm: Option<f64>,
        meanwhile: impl FnOnce(&mut Self),
    ) -> Result<()> {
        let asked = StepRequest { max_norm, is_late: true, less: None };
        self.begin_step(updater, asked, None, &mut once(meanwhile))
    }

    fn late_losses(&mut self, losses: &mut Vec<f64>) -> Result<()> {
        let given = self.losses.give(losses);
        given.map_err(|error| self.context.gpu().first_of(error))?;
        if self.outputs_are_late {
            self.bring_outputs()?;
        }
        Ok(())
    }

    fn begin_evaluation(&mut self, batch: &M::Batch<'_>, labels: bool) -> Result<()> {
        if labels && M::PLAN.losses.is_empty() {
            return Err(ModelError::NoLoss { model: M::NAME }.into());
        }
        self.compute(batch, if labels { LOSS } else { Wanted::OUTPUTS })?;
        let (gpu, workspace) = (self.context.gpu(), &self.workspace);
        gpu.check()?;
        let of = |name: &str| self.program.output(&M::PLAN, workspace, name);
        let terms = labels.then(|| self.program.loss(&M::PLAN, workspace));
        let n_terms = M::PLAN.losses.len();
        let scores = self.program.scores::<M>(workspace);
        let asked = self.evaluations.ask(gpu, M::OUTPUTS, of, scores, n_terms, terms);
        self.outputs_are_late = false;
        Ok(asked.map_err(|error| gpu.first_of(error))?)
    }

    fn end_evaluation(&mut self) -> Result<f64> {
        let ended = self.evaluations.end(&mut self.outputs);
        let ended = ended.ok_or(ModelError::NotBegun { model: M::NAME })?;
        Ok(ended.map_err(|error| self.context.gpu().first_of(error))?)
    }

    fn to_host<R: UpdateRule>(&mut self, updater: &mut Updater<R, M::Element>) -> Result<()> {
        self.weights_to_host()?;
        // States may still be there where weights were asked for before.
        let parameters = self.host.parameters_mut();
        for (index, (table, parameter)) in
            self.workspace.tables.iter_mut().zip(parameters).enumerate()
        {
            updater.states_from_gpu(index, table, parameter.table)?;
        }
        updater.samples_from_gpu(&self.workspace.samples)
    }

    fn dense_output(&self, index: usize) -> Option<DenseView<'_, M::Element>> {
        match self.outputs.others.get(index)? {
            Array::Dense(_) => self.outputs.dense.get(index).map(Dense::view),
            _ => None,
        }
    }

    fn linked_scores(&self) -> Option<Scores<'_, M::Element>> {
        let (link, _) = M::PLAN.linked_score(M::OUTPUTS.first()?.name)?;
        Some(Scores { link, values: self.outputs.scores.view() })
    }

    /// As of the last flush of the updater that trains it.
    fn parameters(&self) -> Vec<ParameterRef<'_, M::Element>> {
        self.host.parameters()
    }

    /// Brought back first, and moved to the GPU again by the next step.
    fn parameters_mut(&mut self) -> Vec<ParameterMut<'_, M::Element>> {
        self.failure = self.weights_to_host().err();
        self.newest = Newest::Host;
        self.host.parameters_mut()
    }
}

/// Calls `of` the first time that it is called.
fn once<A>(of: impl FnOnce(&mut A)) -> impl FnMut(&mut A) {
    let mut of = Some(of);
    move |argument| {
        if let Some(of) = of.take() {
            of(argument);
        }
    }
}
