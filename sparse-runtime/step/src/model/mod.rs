//! The trait `Model`, which `graph!` implements: the one interface between the compiler and the
//! training library.

pub mod any_model;
mod check_rows;
mod declarations;
pub(crate) mod dims;
pub(crate) mod error;
pub mod gradient;
#[cfg(feature = "cuda")]
pub(crate) mod on_gpu;
mod parameter;
mod rows;
mod steps;

pub use crate::error::{Error, Result};
pub use any_model::{AnyModel, ModelFacts};
pub use check_rows::check_rows_read;
pub use declarations::{Extent, InputInfo, InputRole, LabelKind, OutputInfo, ParameterInfo, Plan};
pub use dims::{Dims, DimsError};
pub use error::ModelError;
pub use gradient::GradientMut;
#[cfg(feature = "cuda")]
pub use on_gpu::{OnGpu, for_each_unit};
pub use parameter::{Parameter, ParameterMut, ParameterRef, ParameterStorage, RowSparseGradient};
pub use rows::{InputView, RowIds, RowSet};
pub use sparse_core::operators::Link;
pub use steps::RowSteps;

use crate::optimizer::Updater;
use nnz_arrays::formats::{CsrView, DenseView, IdsView, RowIdsView, RowSparseView, Shape};
use nnz_arrays::kernels::Parallel;
use nnz_arrays::parameter_memory::Table;
use nnz_optim::UpdateRule;
use sparse_core::element::{Float, Unit};
use sparse_core::inspect::{BoundPlan, Sizes};

/// A model that `graph!` compiled, or one written by hand in the same form.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a model",
    note = "`graph!` writes a model, and `new` makes one: `Linear::new(dims! {{ d: 10 }}, \
            Seed(1))?`"
)]
pub trait Model: Clone {
    /// The element type of parameters and arithmetic.
    type Element: Float;
    /// One batch: a view for each input and label. Labels are not read by
    /// [`forward`](Model::forward).
    type Batch<'a>: Copy;
    /// One array for each output; the field types show the inferred storage types.
    type Outputs;
    /// One array for each parameter that is not frozen; the field types show the derived storage
    /// types.
    type Gradients;

    /// The model's name as declared.
    const NAME: &'static str;
    /// The compiler's plan. [`plan`](Model::plan) has the sizes of a model in it.
    const PLAN: Plan;
    /// A hash of the typed graph; a checkpoint of another graph is refused by it.
    const FINGERPRINT: u64;
    /// The inputs and labels, in the order of declaration.
    const INPUTS: &'static [InputInfo];
    /// The parameters, in the order of declaration.
    const PARAMETERS: &'static [ParameterInfo];
    /// The outputs, in the order of declaration.
    const OUTPUTS: &'static [OutputInfo];
    /// Whether [`train_rows`](Model::train_rows) exists: a step of one sample is one loop.
    const TRAINS_ROWS: bool = false;

    /// Whether training steps correct the derivatives of a sample's loss by its scores for rules
    /// that [need it](UpdateRule::CORRECTS). The model is generalised linear then: all gradients of
    /// a sample are these derivatives times factors that do not depend on parameters.
    const CORRECTS_SCORES: bool = false;

    /// Whether the model has states, values that are carried from batch to batch. They are written
    /// by steps, and by [`forward_carrying`](Model::forward_carrying) and
    /// [`loss_carrying`](Model::loss_carrying).
    const WRITES_STATES: bool = false;

    /// Whether the update of a state reads a label, so that
    /// [`forward_carrying`](Model::forward_carrying) needs labels too.
    const STATES_READ_LABELS: bool = false;

    /// The dimensions of [`dims`](Model::dims) that number table rows and nothing else.
    ///
    /// They are the first extent of trained tables, all of which are read and written in the rows
    /// that the same inputs [name](ParameterInfo::reads). Workers compute with tables of those rows
    /// alone that a step names, numbered anew in their order: loss and gradients have the same
    /// bits.
    const ROW_DIMENSIONS: &'static [&'static str] = &[];

    /// Whether [`take_batch`](Model::take_batch) exists: the model computes elsewhere, and copies
    /// batches there meanwhile.
    const TAKES_BATCHES: bool = false;

    /// A model whose parameters are existing tables: `table` gives the one with a name and a shape.
    ///
    /// # Errors
    ///
    /// Errors of the model's `new` and of `table`, a table of another shape;
    /// [`ModelError::NotFromTables`] for a model written by hand without this method.
    fn from_tables(dims: Dims, table: &mut MakeTable<'_, Self::Element>) -> Result<Self> {
        let _ = (dims, table);
        Err(ModelError::NotFromTables { model: Self::NAME }.into())
    }

    /// The dimensions fixed when the model was made, by name.
    fn dims(&self) -> &Dims;

    /// The compiler's plan, with this model's dimensions filled in; [`bind`](BoundPlan::bind) adds
    /// those of a batch.
    ///
    /// `println!("{}", model.plan().bind(&batch))` prints a line for each value with the bytes it
    /// takes.
    fn plan(&self) -> BoundPlan<'static> {
        let mut sizes = Sizes::default();
        for (name, extent) in self.dims().iter() {
            sizes.dim(name, extent);
        }
        Self::PLAN.bind(sizes)
    }

    /// Binds this model's inputs and labels to a batch of some data. Checks types, not extents.
    fn bind<'a, S: BatchSource<'a, Self::Element>>(&self, source: &S) -> Result<Self::Batch<'a>>;

    /// Checks the extents and ids of a batch against the model's dimensions and each other, those
    /// of labels if they are read. Every call that computes does so first. A model written by hand
    /// may check by itself.
    ///
    /// # Errors
    ///
    /// [`ModelError::Extent`], [`ModelError::Rank`] and [`ModelError::Id`], naming the input.
    fn check_batch(&self, batch: &Self::Batch<'_>, labels: bool) -> Result<()> {
        let _ = (batch, labels);
        Ok(())
    }

    /// Input or label `index` of a batch, by its position in [`INPUTS`](Model::INPUTS).
    fn input<'a>(batch: &Self::Batch<'a>, index: usize) -> Option<InputView<'a, Self::Element>>;

    /// The table rows of parameter `index` that a step on this batch reads, ascending and distinct:
    /// they must exist and be up to date before the step. Nothing is computed and no parameter is
    /// read, so that a store can fetch the rows of the next batch during this one. O(entries of the
    /// inputs that name rows), without allocation once `rows` has seen the largest batch.
    ///
    /// ```
    /// use nnz::formats::RowIdsView;
    /// use nnz::model::{Model, RowIds};
    ///
    /// /// The number of table rows of each parameter that a worker fetches for a batch.
    /// fn rows_fetched<M: Model>(
    ///     model: &M,
    ///     batch: &M::Batch<'_>,
    /// ) -> nnz::Result<Vec<usize>> {
    ///     let (mut rows, parameters) = (RowIds::new(), model.parameters());
    ///     let count = |index: usize| {
    ///         Ok(match model.rows_read(batch, index, &mut rows)? {
    ///             RowIdsView::All => parameters[index].shape.n_rows(),
    ///             RowIdsView::Listed(ids) => ids.len(),
    ///         })
    ///     };
    ///     (0..parameters.len()).map(count).collect()
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ModelError::Id`] and [`ModelError::Extent`] for ids and columns beyond the parameter's
    /// rows, [`ModelError::NoParameter`].
    fn rows_read<'r>(
        &self,
        batch: &Self::Batch<'_>,
        index: usize,
        rows: &'r mut RowIds,
    ) -> Result<RowIdsView<'r>> {
        let n_rows = rows::n_rows(self, index)?;
        rows.of::<Self>(Self::PARAMETERS[index].reads, batch, n_rows)
    }

    /// The table rows of parameter `index` that the gradient of this batch stores, and possibly
    /// some more: those that a step pushes to a store. Otherwise like
    /// [`rows_read`](Model::rows_read).
    ///
    /// # Errors
    ///
    /// As [`rows_read`](Model::rows_read).
    fn rows_written<'r>(
        &self,
        batch: &Self::Batch<'_>,
        index: usize,
        rows: &'r mut RowIds,
    ) -> Result<RowIdsView<'r>> {
        let n_rows = rows::n_rows(self, index)?;
        rows.of::<Self>(Self::PARAMETERS[index].writes, batch, n_rows)
    }

    /// Whether steps of this model correct derivatives, like
    /// [`CORRECTS_SCORES`](Model::CORRECTS_SCORES) for models that compute on the host.
    fn corrects_scores(&self) -> bool {
        Self::CORRECTS_SCORES
    }

    /// The outputs for a batch, valid until the next call. States stay as they are. Allocates
    /// nothing after the largest batch.
    fn forward(&mut self, batch: &Self::Batch<'_>) -> Result<&Self::Outputs>;

    /// The loss of a batch (the mean over its samples). Leaves the outputs in place, and states as
    /// they are.
    fn loss(&mut self, batch: &Self::Batch<'_>) -> Result<f64>;

    /// The outputs for a batch, like [`forward`](Model::forward). Then each state becomes its
    /// `update`, computed from the old states and parameters, as after a training step. Call it for
    /// the batches of a sequence in order. For a model without states it is
    /// [`forward`](Model::forward).
    ///
    /// # Errors
    ///
    /// As [`forward`](Model::forward); [`ModelError::NoLabel`] if
    /// [a state is computed from a label](Model::STATES_READ_LABELS) that the batch lacks;
    /// [`ModelError::NotCarrying`] for a model with states, written by hand without this method.
    /// States are unchanged then.
    fn forward_carrying(&mut self, batch: &Self::Batch<'_>) -> Result<&Self::Outputs> {
        if Self::WRITES_STATES {
            return Err(ModelError::NotCarrying { model: Self::NAME }.into());
        }
        self.forward(batch)
    }

    /// The loss of a batch, like [`loss`](Model::loss); then states are updated, as by
    /// [`forward_carrying`](Model::forward_carrying).
    ///
    /// # Errors
    ///
    /// As [`loss`](Model::loss); [`ModelError::NotCarrying`] for a model with states, written by
    /// hand without this method.
    fn loss_carrying(&mut self, batch: &Self::Batch<'_>) -> Result<f64> {
        if Self::WRITES_STATES {
            return Err(ModelError::NotCarrying { model: Self::NAME }.into());
        }
        self.loss(batch)
    }

    /// The loss of a batch; leaves the gradient of every parameter in
    /// [`gradients`](Model::gradients).
    fn loss_and_grads(&mut self, batch: &Self::Batch<'_>) -> Result<f64>;

    /// The outputs of the last call that computed them.
    fn outputs(&self) -> &Self::Outputs;

    /// The gradients of the last [`loss_and_grads`](Model::loss_and_grads).
    fn gradients(&self) -> &Self::Gradients;

    /// One step: loss, gradients and update, fused where the graph allows. Returns the loss before
    /// the update. Leaves the outputs (of the parameters before the update) in place, unless
    /// [`Updater::records_outputs`] says that they are not read.
    fn train_step<R: UpdateRule>(
        &mut self,
        batch: &Self::Batch<'_>,
        updater: &mut Updater<R, Self::Element>,
    ) -> Result<f64>;

    /// A step for each sample of a batch, one after the other: bit for bit like
    /// [`train_step`](Model::train_step) on each sample as a batch of its own, without the cost of
    /// a call. Ends early after a loss that is infinite or NaN. Outputs of more than one sample are
    /// not computed.
    ///
    /// # Errors
    ///
    /// As [`train_step`](Model::train_step), before the first step; [`ModelError::NotByRows`]
    /// unless [`TRAINS_ROWS`](Model::TRAINS_ROWS).
    fn train_rows<R: UpdateRule>(
        &mut self,
        batch: &Self::Batch<'_>,
        updater: &mut Updater<R, Self::Element>,
    ) -> Result<RowSteps> {
        let _ = (batch, updater);
        Err(ModelError::NotByRows { model: Self::NAME }.into())
    }

    /// One step like [`train_step`](Model::train_step), whose gradients may be changed before the
    /// update: `adjust` gets the model after [`loss_and_grads`](Model::loss_and_grads). Complete
    /// gradients are made for that: nothing is fused.
    ///
    /// # Errors
    ///
    /// As [`train_step`](Model::train_step); the first error of `adjust`;
    /// [`ModelError::NoAdjustedStep`] for a model written by hand without such a step.
    fn adjusted_step<R: UpdateRule>(
        &mut self,
        batch: &Self::Batch<'_>,
        updater: &mut Updater<R, Self::Element>,
        adjust: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<f64> {
        let _ = (batch, updater, adjust);
        Err(ModelError::NoAdjustedStep { model: Self::NAME }.into())
    }

    /// One step like [`train_step`](Model::train_step), with the gradients of all parameters, dense
    /// and row_sparse, multiplied by one factor so that their common norm is at most `max_norm`.
    /// The norm is that of the gradient of the loss, before a rule rescales or clips its elements.
    ///
    /// # Errors
    ///
    /// As [`adjusted_step`](Model::adjusted_step); [`ModelError::NoGradient`].
    fn clipped_step<R: UpdateRule>(
        &mut self,
        batch: &Self::Batch<'_>,
        updater: &mut Updater<R, Self::Element>,
        max_norm: f64,
    ) -> Result<f64> {
        self.adjusted_step(batch, updater, |model| gradient::clip(model, max_norm))
    }

    /// One step like [`train_step`](Model::train_step), by the gradients less those of the same
    /// batch at `snapshot`, a model with other parameters: for a rule that adds their mean over all
    /// data again.
    ///
    /// # Errors
    ///
    /// As [`adjusted_step`](Model::adjusted_step); [`ModelError::NoGradient`].
    fn corrected_step<R: UpdateRule>(
        &mut self,
        batch: &Self::Batch<'_>,
        updater: &mut Updater<R, Self::Element>,
        snapshot: &mut Self,
    ) -> Result<f64> {
        snapshot.loss_and_grads(batch)?;
        self.adjusted_step(batch, updater, |model| gradient::subtract(model, snapshot))
    }

    /// Takes a copy of a batch with its labels, for the next
    /// [`step_on_taken`](Model::step_on_taken). An earlier one without a step is dropped. O(values
    /// of the batch); copies beside other work are not waited for.
    ///
    /// # Errors
    ///
    /// As [`train_step`](Model::train_step), before the step; [`ModelError::NoBatchTaken`] unless
    /// [`TAKES_BATCHES`](Model::TAKES_BATCHES).
    fn take_batch(&mut self, batch: &Self::Batch<'_>) -> Result<()> {
        let _ = batch;
        Err(ModelError::NoBatchTaken { model: Self::NAME }.into())
    }

    /// One step on the taken batch, with the bits of [`train_step`](Model::train_step), or with a
    /// `max_norm` of [`clipped_step`](Model::clipped_step). `meanwhile` is called during the
    /// computation, unless the step fails before. The next batch can be taken there.
    ///
    /// # Errors
    ///
    /// As those; [`ModelError::NoBatchTaken`].
    fn step_on_taken<R: UpdateRule>(
        &mut self,
        updater: &mut Updater<R, Self::Element>,
        max_norm: Option<f64>,
        meanwhile: impl FnOnce(&mut Self),
    ) -> Result<f64> {
        let _ = (updater, max_norm, meanwhile);
        Err(ModelError::NoBatchTaken { model: Self::NAME }.into())
    }

    /// Like [`step_on_taken`](Model::step_on_taken), without waiting for the loss or outputs:
    /// [`late_losses`](Model::late_losses) waits. `meanwhile` is called when the step was launched,
    /// or before it would wait for something.
    ///
    /// # Errors
    ///
    /// As [`step_on_taken`](Model::step_on_taken), and failures of earlier steps. The next call
    /// that waits reports failures of this one.
    fn begin_step_on_taken<R: UpdateRule>(
        &mut self,
        updater: &mut Updater<R, Self::Element>,
        max_norm: Option<f64>,
        meanwhile: impl FnOnce(&mut Self),
    ) -> Result<()> {
        let _ = (updater, max_norm, meanwhile);
        Err(ModelError::NoBatchTaken { model: Self::NAME }.into())
    }

    /// Waits for the losses of the steps that were [begun](Model::begin_step_on_taken) since the
    /// last call, and adds them to `losses` in the order of the steps. [`outputs`](Model::outputs)
    /// are then those of the last step. O(steps).
    ///
    /// # Errors
    ///
    /// Failures of these steps.
    fn late_losses(&mut self, losses: &mut Vec<f64>) -> Result<()> {
        let _ = losses;
        Ok(())
    }

    /// Requests the outputs of a batch, and with `labels` its loss as well, from a model that
    /// [takes batches](Model::TAKES_BATCHES). The batch is copied and need not live longer.
    /// [`end_evaluation`](Model::end_evaluation) returns them, in the order of the requests.
    /// O(values of the batch). Earlier requests are not waited for, so that a batch is copied while
    /// the previous one is computed.
    ///
    /// # Errors
    ///
    /// As [`loss`](Model::loss), or without `labels` as [`forward`](Model::forward), before
    /// anything is computed, and earlier failures; nothing is requested then.
    /// [`ModelError::NotBegun`] unless [`TAKES_BATCHES`](Model::TAKES_BATCHES).
    fn begin_evaluation(&mut self, batch: &Self::Batch<'_>, labels: bool) -> Result<()> {
        let _ = (batch, labels);
        Err(ModelError::NotBegun { model: Self::NAME }.into())
    }

    /// Waits for the first pending [request](Model::begin_evaluation): its outputs are
    /// [`outputs`](Model::outputs) then. Returns its loss, NaN if that was not requested.
    ///
    /// # Errors
    ///
    /// [`ModelError::NotBegun`] without a pending request; failures of its computation.
    fn end_evaluation(&mut self) -> Result<f64> {
        Err(ModelError::NotBegun { model: Self::NAME }.into())
    }

    /// Brings parameters, and their states in `updater`, back to the host if the model keeps them
    /// elsewhere; otherwise does nothing. [`Updater::flush_model`] calls it.
    ///
    /// # Errors
    ///
    /// Failures of the device.
    fn to_host<R: UpdateRule>(&mut self, updater: &mut Updater<R, Self::Element>) -> Result<()> {
        let _ = updater;
        Ok(())
    }

    /// The gradient of parameter `index`, of the last [`loss_and_grads`](Model::loss_and_grads),
    /// for changes. `None` for a frozen one. Workers, clipping by the norm and rules that correct
    /// gradients need it for all others.
    fn gradient_mut(&mut self, index: usize) -> Option<GradientMut<'_, Self::Element>> {
        let _ = index;
        None
    }

    /// The number of threads that later calls may use, where their work justifies it; 1 by default.
    /// The bits of results do not depend on it. A model written by hand may do nothing.
    fn set_parallel(&mut self, parallel: Parallel) {
        let _ = parallel;
    }

    /// Output `index` of the last call that computed outputs, if it is dense and holds numbers.
    fn dense_output(&self, index: usize) -> Option<DenseView<'_, Self::Element>>;

    /// The scores of which the first output of the last call is a link, in the output's shape:
    /// metrics see them in place of the output. `None` if it is no link of present scores, and for
    /// a model written by hand without this method, whose metrics see the output.
    fn linked_scores(&self) -> Option<Scores<'_, Self::Element>> {
        None
    }

    /// The parameters, in the order of [`PARAMETERS`](Model::PARAMETERS).
    fn parameters(&self) -> Vec<ParameterRef<'_, Self::Element>>;

    /// The parameters, for writing.
    fn parameters_mut(&mut self) -> Vec<ParameterMut<'_, Self::Element>>;
}

/// Scores, and the link that turns them into predictions.
#[derive(Clone, Copy, Debug)]
pub struct Scores<'a, T: Float> {
    /// The link.
    pub link: Link,
    /// The scores: `[n]` or `[n, k]`.
    pub values: DenseView<'a, T>,
}

/// A function from the name and shape of a parameter to its table.
pub type MakeTable<'a, T> = dyn FnMut(&'static str, Shape) -> Result<Table<T>> + 'a;

/// The source of the arrays of a batch, by the position of the declaration in [`Model::INPUTS`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no arrays for a model of `{T}`",
    note = "batches of a data set of the same element type have them: write `data.cast::<{T}>()?`, \
            or the element type of the data as `dtype` in the model"
)]
pub trait BatchSource<'a, T: Float> {
    /// The number of samples of the batch.
    fn n_rows(&self) -> usize;
    /// Input `index` as csr.
    fn csr(&self, index: usize) -> Result<CsrView<'a, T>>;
    /// Input `index` as a csr that holds a pattern only. One with values is read once for each
    /// batch, unless a source knows that they are 1.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotUnit`](nnz_arrays::formats::FormatError::NotUnit) for the first value that
    /// is not 1.
    fn unit(&self, index: usize) -> Result<CsrView<'a, Unit>> {
        Ok(self.csr(index)?.units()?)
    }
    /// Input or label `index` as a dense array with the rank declared.
    fn dense(&self, index: usize) -> Result<DenseView<'a, T>>;
    /// Input or label `index` as integer ids, of the type declared.
    fn ids(&self, index: usize) -> Result<IdsView<'a>>;
    /// Input `index` as row_sparse. Data sets hold none.
    fn row_sparse(&self, index: usize) -> Result<RowSparseView<'a, T>> {
        Err(ModelError::RowSparseInput { index }.into())
    }
}
