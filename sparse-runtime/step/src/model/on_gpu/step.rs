//! A training step on a GPU, launched as a whole.

use super::difference::{as_gradient, difference};
use super::workspace::{Wanted, Workspace};
use super::{Newest, OnGpu};
use crate::error::{Error, Result};
use crate::model::{Model, ModelError, RowSet};
use crate::optimizer::clip;
use crate::optimizer::cuda::{CudaGradient, NamedRows, UpdaterOnGpu};
use nnz_arrays::device::cuda::CudaError;
use nnz_arrays::kernels::cuda::table::GpuOperand;
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat};
use nnz_arrays::kernels::reduce::cuda::ReduceFunction;
use nnz_device::cuda::Replay;
use sparse_core::ir::Attributes;
use sparse_core::operators::find;

/// What there is to a step beside its batch.
pub(super) struct StepRequest<'s, M: Model<Element: GpuFloat>> {
    /// What the norm of all gradients is at most.
    pub(super) max_norm: Option<f64>,
    /// Whether outputs may come late.
    pub(super) is_late: bool,
    /// A model whose gradients of the same batch, which were asked for, are taken from those of
    /// this one.
    pub(super) less: Option<&'s OnGpu<M>>,
}

impl<M: Model<Element: GpuFloat>> StepRequest<'_, M> {
    /// A step as it is.
    pub(super) const PLAIN: Self = StepRequest { max_norm: None, is_late: false, less: None };
}

impl<M: Model<Element: GpuFloat>> OnGpu<M> {
    /// Asks for a step on a batch that is copied for it, or on the one that was
    /// [taken](Model::take_batch). `meanwhile` is called once when the GPU computes, before the
    /// host waits for a norm or for outputs.
    pub(super) fn begin_step(
        &mut self,
        updater: &mut dyn UpdaterOnGpu<M::Element>,
        asked: StepRequest<'_, M>,
        batch: Option<&M::Batch<'_>>,
        meanwhile: &mut dyn FnMut(&mut Self),
    ) -> Result<()> {
        updater.begin_step_on_gpu()?;
        match batch {
            Some(batch) => self.load(batch, true)?,
            None => self.read_taken()?,
        }
        if let Some(index) = self.program.corrected() {
            let Workspace { tables, samples, .. } = &mut self.workspace;
            let columns = tables[index].weights.shape().row_size();
            updater.samples_to_gpu(samples, columns, self.context.gpu())?;
        }
        let n_losses = self.losses.len();
        let block = self.workspace.batches.current();
        // Out of the model, which the launches are of.
        let mut replays = std::mem::take(&mut self.replays[block]);
        let begun = self.ask_for_step(updater, asked, &mut replays, meanwhile);
        self.replays[block] = replays;
        if begun.is_err() && self.workspace.samples.are_exchanged() {
            // Derivatives may be there whose gradients are not in the mean.
            updater.forget_mean();
        }
        self.workspace.samples.rest();
        if begun.is_err() {
            // That of a step which was not made.
            self.losses.truncate(n_losses);
        }
        begun.map_err(|error| match error {
            Error::Cuda(error) => self.context.gpu().first_of(error).into(),
            other => other,
        })
    }

    fn ask_for_step(
        &mut self,
        updater: &mut dyn UpdaterOnGpu<M::Element>,
        asked: StepRequest<'_, M>,
        [before, after]: &mut [Replay; 2],
        meanwhile: &mut dyn FnMut(&mut Self),
    ) -> Result<()> {
        let StepRequest { max_norm, is_late, less } = asked;
        // A norm is that of gradients that are there, as are those that others are taken from.
        let in_place = max_norm.is_none() && less.is_none() && updater.takes_sums_on_gpu();
        let mut wanted = Wanted::LOSS.and(Wanted::GRADIENTS);
        for (of, is_wanted) in
            [(Wanted::OUTPUTS, updater.records_outputs()), (Wanted::SUMS, !in_place)]
        {
            wanted = if is_wanted { wanted.and(of) } else { wanted };
        }
        let gpu = self.context.gpu().clone();
        self.make_ready(updater)?;
        gpu.replay(before, || {
            self.settle_read(updater)?;
            self.run(wanted)
        })?;
        // Before what it does not wait for.
        self.ask_for_loss()?;
        let brings_outputs = updater.records_outputs() && !is_late;
        if brings_outputs {
            self.ask_for_outputs()?;
        }
        if max_norm.is_some() {
            self.ask_for_rows(in_place)?;
            meanwhile(self);
            self.ask_for_updates(updater, (max_norm, less), in_place)?;
        } else {
            gpu.replay(after, || {
                self.ask_for_rows(in_place)?;
                self.ask_for_updates(updater, (max_norm, less), in_place)
            })?;
            gpu.check()?;
            meanwhile(self);
        }
        if brings_outputs {
            self.outputs.wait()?;
        }
        self.outputs_are_late = updater.records_outputs() && is_late;
        Ok(())
    }

    /// Copies to the GPU what is not there of what the step reads, ahead of its launches, which a
    /// graph may have: parameters, and what rows of them wait for.
    fn make_ready(&mut self, updater: &mut dyn UpdaterOnGpu<M::Element>) -> Result<()> {
        self.weights_to_gpu()?;
        let parameters = self.host.parameters();
        for (index, parameter) in parameters.iter().enumerate() {
            if updater.has_lazy_rows(index) {
                let table = &mut self.workspace.tables[index];
                updater.make_room_on_gpu(index, table, parameter.table, self.context.gpu())?;
            }
        }
        Ok(())
    }

    /// Brings the rows that the batch reads up to date, as the model's
    /// [`PARAMETERS`](Model::PARAMETERS) say.
    fn settle_read(&mut self, updater: &mut dyn UpdaterOnGpu<M::Element>) -> Result<()> {
        let Workspace { batches, tables, .. } = &mut self.workspace;
        let gpu = self.context.gpu();
        for (index, (table, info)) in tables.iter_mut().zip(M::PARAMETERS).enumerate() {
            if !updater.has_lazy_rows(index) {
                continue;
            }
            self.newest = Newest::Gpu;
            let RowSet::Of(inputs) = info.reads else {
                updater.settle_read_on_gpu(index, table, NamedRows::All, gpu)?;
                continue;
            };
            for &input in inputs {
                let rows = match batches.operand(input) {
                    Some(GpuOperand::Csr(x)) => NamedRows::Columns(x.columns()),
                    Some(GpuOperand::Unit(x)) => NamedRows::Columns(x.columns()),
                    Some(GpuOperand::Ids(ids)) => NamedRows::Ids(ids),
                    _ => continue,
                };
                updater.settle_read_on_gpu(index, table, rows, gpu)?;
            }
        }
        Ok(())
    }

    /// After all other launches, and before anything is updated, so that a step which lacks memory
    /// changes nothing.
    fn ask_for_rows(&mut self, in_place: bool) -> Result<(), CudaError> {
        if in_place {
            self.program.ask_for_rows(&mut self.workspace, &mut self.context)
        } else {
            Ok(())
        }
    }

    fn ask_for_updates(
        &mut self,
        updater: &mut dyn UpdaterOnGpu<M::Element>,
        (max_norm, less): (Option<f64>, Option<&OnGpu<M>>),
        in_place: bool,
    ) -> Result<()> {
        let parameters = self.host.parameters();
        let trained = || {
            parameters.iter().enumerate().filter(|(at, _)| M::PARAMETERS[*at].gradient.is_some())
        };
        for (index, parameter) in trained() {
            let table = &mut self.workspace.tables[index];
            updater.make_room_on_gpu(index, table, parameter.table, self.context.gpu())?;
        }
        let factor = match max_norm {
            Some(max_norm) => {
                let gradients = trained()
                    .filter_map(|(at, _)| self.program.gradient(&M::PLAN, &self.workspace, at));
                factor_of_norm(max_norm, gradients, &mut self.context)?
            }
            None => 1.0,
        };
        for (index, parameter) in trained() {
            // Out of the workspace, which has the gradient.
            let mut table = std::mem::take(&mut self.workspace.tables[index]);
            let (program, workspace, context) = (&self.program, &self.workspace, &mut self.context);
            let sums = program.row_sums(workspace, index);
            let whole = program.gradient(&M::PLAN, workspace, index);
            let old = less.and_then(|of| of.program.gradient(&M::PLAN, &of.workspace, index));
            let corrected = whole.zip(old).and_then(|(new, old)| difference(new, old, context));
            // Both are of the type that the compiler derived, of which there is a difference.
            let gradient = match less {
                Some(_) => corrected.as_ref().and_then(as_gradient),
                None => whole,
            };
            let updated = match (sums, gradient) {
                (Some(sums), _) if in_place => {
                    let (host, gpu) = (parameter.table, &context.gpu());
                    updater.apply_sums_on_gpu(index, &mut table, host, &sums, gpu)
                }
                (_, Some(gradient)) => updater.apply_scaled_on_gpu(
                    index,
                    &mut table,
                    parameter.table,
                    gradient,
                    factor,
                    context,
                ),
                (_, None) => Ok(()),
            };
            self.workspace.tables[index] = table;
            updated?;
        }
        self.newest = Newest::Gpu;
        updater.end_step()
    }

    fn read_taken(&mut self) -> Result<()> {
        if !self.workspace.batches.has_taken() {
            return Err(ModelError::NoBatchTaken { model: M::NAME }.into());
        }
        let found = self.workspace.batches.read_taken();
        Ok(found.map_err(|error| self.context.gpu().first_of(error))?)
    }
}

/// What gradients are multiplied with, so that the norm of all their elements together is at most
/// `max_norm`. The host waits for it. Gradients whose squares are beyond `f64` become 0: those on
/// the host are made smaller first.
fn factor_of_norm<'w, T: GpuFloat>(
    max_norm: f64,
    gradients: impl Iterator<Item = CudaGradient<'w, T>>,
    context: &mut CudaContext,
) -> Result<f64, CudaError> {
    let squares = find("square_sum").and_then(|of| ReduceFunction::new(of, &Attributes::default()));
    // The table has it.
    let Some(squares) = squares else { return Ok(1.0) };
    let mut sums = Vec::new();
    for gradient in gradients {
        sums.push(squares.partial_results(gradient.values(), context)?.iter().sum());
    }
    Ok(clip::factor(max_norm, &sums))
}
