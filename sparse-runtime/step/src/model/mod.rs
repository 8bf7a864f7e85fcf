//! The trait `Model`, which `graph!` implements: the one interface between the compiler and the
//! training library.

mod dims;
mod error;
pub(crate) mod gradient;
#[cfg(feature = "cuda")]
mod on_gpu;
mod parameter;
mod rows;
mod steps;

pub use dims::{Dims, DimsError};
pub use error::ModelError;
pub use gradient::GradientMut;
#[cfg(feature = "cuda")]
pub use on_gpu::OnGpu;
pub use parameter::{Parameter, ParameterMut, ParameterRef, ParameterStorage, RowSparseGradient};
pub use rows::{InputView, RowIds, RowSet};
pub use sparse_core::operators::Link;
pub use steps::RowSteps;

use crate::error::Result;
use crate::formats::{CsrView, DenseView, IdsView, RowIdsView, RowSparseView, Shape};
use crate::kernels::Parallel;
use crate::optimizer::{Updater, clip};
use crate::parameter_memory::Table;
use sparse_core::element::{Float, Unit};
use sparse_core::inspect::{BoundPlan, PlanTable, Sizes};
use sparse_core::storage::{ElementType, Storage};
use sparse_core::update_rules::UpdateRule;

/// A model that `graph!` compiled (or that somebody wrote by hand in the same form).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a model",
    note = "`graph!` writes a model, and `new` makes one: `Linear::new(dims! {{ d: 10 }}, \
            Seed(1))?`"
)]
pub trait Model: Clone {
    /// The element type of parameters and arithmetic.
    type Element: Float;
    /// One batch: a view for each input and label. Labels are not read by [`forward`](Model::forward).
    type Batch<'a>: Copy;
    /// One array for each output; the field types show the inferred storage types.
    type Outputs;
    /// One array for each parameter that is not frozen; the field types show the derived storage types.
    type Gradients;

    /// The model's name as declared.
    const NAME: &'static str;
    /// What the compiler decided. [`plan`](Model::plan) has the sizes of a model in it.
    const PLAN: Plan;
    /// A hash of the typed graph; a checkpoint of another graph is refused by it.
    const FINGERPRINT: u64;
    /// The inputs and labels, in the order of declaration.
    const INPUTS: &'static [InputInfo];
    /// The parameters, in the order of declaration.
    const PARAMETERS: &'static [ParameterInfo];
    /// The outputs, in the order of declaration.
    const OUTPUTS: &'static [OutputInfo];
    /// Whether [`train_rows`](Model::train_rows) is there: a step of one row is one loop.
    const TRAINS_ROWS: bool = false;

    /// Whether training steps correct the derivatives of a row's loss by its scores for rules that [do so](UpdateRule::CORRECTS): the
    /// model is generalised linear, so that all gradients of a row are these derivatives times what does not depend on parameters.
    const CORRECTS_SCORES: bool = false;

    /// Whether the model has states, values that are carried over from batch to batch: written by
    /// steps, and by
    /// [`forward_carrying`](Model::forward_carrying) and [`loss_carrying`](Model::loss_carrying).
    const WRITES_STATES: bool = false;

    /// Whether what a state becomes is computed from a label, so that
    /// [`forward_carrying`](Model::forward_carrying) needs labels too.
    const STATES_READ_LABELS: bool = false;

    /// Whether [`take_batch`](Model::take_batch) is there: the model computes elsewhere, and copies batches there while it does.
    const TAKES_BATCHES: bool = false;

    /// A model whose parameters are tables that there are: `table` gives the one of a name and a shape.
    ///
    /// # Errors
    ///
    /// As of the model's `new`, what `table` says, a table of another shape; [`ModelError::NotFromTables`] of a model written by hand
    /// without this.
    fn from_tables(dims: Dims, table: &mut MakeTable<'_, Self::Element>) -> Result<Self> {
        let _ = (dims, table);
        Err(ModelError::NotFromTables { model: Self::NAME }.into())
    }

    /// The dimensions fixed when the model was made, by name.
    fn dims(&self) -> &Dims;

    /// What the compiler decided, with this model's dimensions filled in; those of a batch are added by
    /// [`bind`](BoundPlan::bind).
    ///
    /// `println!("{}", model.plan().bind(&batch))` prints a line for each value with the bytes it takes.
    fn plan(&self) -> BoundPlan<'static> {
        let mut sizes = Sizes::default();
        for (name, extent) in self.dims().iter() {
            sizes.dim(name, extent);
        }
        Self::PLAN.bind(sizes)
    }

    /// Picks this model's inputs and labels out of a batch of some data. Checks types, not extents.
    fn bind<'a, S: BatchSource<'a, Self::Element>>(&self, source: &S) -> Result<Self::Batch<'a>>;

    /// Holds the extents and ids of a batch to the model's dimensions and to each other, those of labels where they are read: what every call
    /// that computes does first. A model written by hand may check for itself.
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

    /// The rows of parameter `index` that a step on this batch reads, ascending and each once: what must be there, and up to
    /// date, before the step. Nothing is computed and no parameter is read, so that a store can fetch the rows of the next batch
    /// during this one. O(entries of the inputs that name rows), and no allocation once `rows` has seen the largest batch.
    ///
    /// ```
    /// use sparse_runtime::formats::RowIdsView;
    /// use sparse_runtime::model::{Model, RowIds};
    ///
    /// /// How many rows of each parameter a worker fetches for a batch.
    /// fn rows_fetched<M: Model>(model: &M, batch: &M::Batch<'_>) -> sparse_runtime::Result<Vec<usize>> {
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
    /// [`ModelError::Id`] and [`ModelError::Extent`] for ids and columns beyond the parameter's rows,
    /// [`ModelError::NoParameter`].
    fn rows_read<'r>(
        &self,
        batch: &Self::Batch<'_>,
        index: usize,
        rows: &'r mut RowIds,
    ) -> Result<RowIdsView<'r>> {
        let n_rows = rows::n_rows(self, index)?;
        rows.of::<Self>(Self::PARAMETERS[index].reads, batch, n_rows)
    }

    /// The rows of parameter `index` that the gradient of this batch stores, and perhaps some more: what a step pushes to a
    /// store. Otherwise as [`rows_read`](Model::rows_read).
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

    /// Whether steps of this one correct derivatives, as [`CORRECTS_SCORES`](Model::CORRECTS_SCORES) says of all that compute on the host.
    fn corrects_scores(&self) -> bool {
        Self::CORRECTS_SCORES
    }

    /// The outputs for a batch, valid until the next call. States stay as they are. Allocates
    /// nothing after the largest batch.
    fn forward(&mut self, batch: &Self::Batch<'_>) -> Result<&Self::Outputs>;

    /// The loss of a batch (the mean over its rows). Leaves the outputs in place, and states as
    /// they are.
    fn loss(&mut self, batch: &Self::Batch<'_>) -> Result<f64>;

    /// The outputs for a batch, as [`forward`](Model::forward) gives them; then each state becomes
    /// what its `update` says, of the states and parameters as they were, as after a training step.
    /// For the batches of a sequence, in their order. The same as
    /// [`forward`](Model::forward) for a model without states.
    ///
    /// # Errors
    ///
    /// As [`forward`](Model::forward); [`ModelError::NoLabel`] where [a state is computed from a
    /// label](Model::STATES_READ_LABELS) that the batch lacks; [`ModelError::NotCarrying`] of a
    /// model with states, written by hand without this. States are as they were then.
    fn forward_carrying(&mut self, batch: &Self::Batch<'_>) -> Result<&Self::Outputs> {
        if Self::WRITES_STATES {
            return Err(ModelError::NotCarrying { model: Self::NAME }.into());
        }
        self.forward(batch)
    }

    /// The loss of a batch, as [`loss`](Model::loss) gives it; then states are updated, as by
    /// [`forward_carrying`](Model::forward_carrying).
    ///
    /// # Errors
    ///
    /// As [`loss`](Model::loss); [`ModelError::NotCarrying`] of a model with states, written by
    /// hand without this.
    fn loss_carrying(&mut self, batch: &Self::Batch<'_>) -> Result<f64> {
        if Self::WRITES_STATES {
            return Err(ModelError::NotCarrying { model: Self::NAME }.into());
        }
        self.loss(batch)
    }

    /// The loss of a batch; leaves the gradient of every parameter in [`gradients`](Model::gradients).
    fn loss_and_grads(&mut self, batch: &Self::Batch<'_>) -> Result<f64>;

    /// The outputs of the last call that computed them.
    fn outputs(&self) -> &Self::Outputs;

    /// The gradients of the last [`loss_and_grads`](Model::loss_and_grads).
    fn gradients(&self) -> &Self::Gradients;

    /// One step: loss, gradients and update, fused where the graph allows. Returns the loss before the update
    /// and leaves the outputs (of the parameters before the update) in place, unless
    /// [`Updater::records_outputs`] says that nobody reads them.
    fn train_step<R: UpdateRule>(
        &mut self,
        batch: &Self::Batch<'_>,
        updater: &mut Updater<R, Self::Element>,
    ) -> Result<f64>;

    /// A step for each row of a batch, one after the other: as [`train_step`](Model::train_step) on each row as a batch of
    /// its own, bit for bit, without what a call costs. Ends early after a loss that is infinite or NaN. Outputs of
    /// more than one row are not computed.
    ///
    /// # Errors
    ///
    /// As [`train_step`](Model::train_step), before the first step; [`ModelError::NotByRows`] unless
    /// [`TRAINS_ROWS`](Model::TRAINS_ROWS).
    fn train_rows<R: UpdateRule>(
        &mut self,
        batch: &Self::Batch<'_>,
        updater: &mut Updater<R, Self::Element>,
    ) -> Result<RowSteps> {
        let _ = (batch, updater);
        Err(ModelError::NotByRows { model: Self::NAME }.into())
    }

    /// One step as [`train_step`](Model::train_step), whose gradients may be changed before the update: `adjust` gets the model as
    /// [`loss_and_grads`](Model::loss_and_grads) left it. Whole gradients are made for that: nothing is fused.
    ///
    /// # Errors
    ///
    /// As [`train_step`](Model::train_step); the first one of `adjust`; [`ModelError::NoAdjustedStep`] of a model written by hand without
    /// such a step.
    fn adjusted_step<R: UpdateRule>(
        &mut self,
        batch: &Self::Batch<'_>,
        updater: &mut Updater<R, Self::Element>,
        adjust: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<f64> {
        let _ = (batch, updater, adjust);
        Err(ModelError::NoAdjustedStep { model: Self::NAME }.into())
    }

    /// One step as [`train_step`](Model::train_step), with the gradients of all parameters, dense and row_sparse, multiplied by
    /// one factor so that the norm of all their elements together is at most `max_norm`. The norm is that of the gradient of the
    /// loss, before a rule rescales or clips its elements.
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
        self.adjusted_step(batch, updater, |model| clip::gradients(model, max_norm))
    }

    /// One step as [`train_step`](Model::train_step), by the gradients less those of the same batch at `snapshot`, a model with other parameters:
    /// what a rule is given that adds their mean over all data again.
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

    /// Takes a copy of a batch with its labels, for the next [`step_on_taken`](Model::step_on_taken). One that was taken before and had no step is
    /// forgotten. O(values of the batch); what is copied beside other work is not waited for.
    ///
    /// # Errors
    ///
    /// As [`train_step`](Model::train_step), before the step; [`ModelError::NoBatchTaken`] unless [`TAKES_BATCHES`](Model::TAKES_BATCHES).
    fn take_batch(&mut self, batch: &Self::Batch<'_>) -> Result<()> {
        let _ = batch;
        Err(ModelError::NoBatchTaken { model: Self::NAME }.into())
    }

    /// One step on the batch that was taken, with the same bits as [`train_step`](Model::train_step), or with a `max_norm` as
    /// [`clipped_step`](Model::clipped_step). `meanwhile` is called while it is computed, unless the step fails before: there the batch that comes
    /// next can be taken.
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

    /// As [`step_on_taken`](Model::step_on_taken), but without waiting for the loss, nor for outputs: [`late_losses`](Model::late_losses) does. `meanwhile`
    /// is called when the step was asked for, or before it would wait for something.
    ///
    /// # Errors
    ///
    /// As [`step_on_taken`](Model::step_on_taken), and what failed in steps before this one; what fails while this one is computed is said by what waits
    /// next.
    fn begin_step_on_taken<R: UpdateRule>(
        &mut self,
        updater: &mut Updater<R, Self::Element>,
        max_norm: Option<f64>,
        meanwhile: impl FnOnce(&mut Self),
    ) -> Result<()> {
        let _ = (updater, max_norm, meanwhile);
        Err(ModelError::NoBatchTaken { model: Self::NAME }.into())
    }

    /// Waits for the losses of the steps that were [begun](Model::begin_step_on_taken) since this was called last, and adds them to `losses` in the order
    /// of the steps. [`outputs`](Model::outputs) are then those of the last. O(steps).
    ///
    /// # Errors
    ///
    /// What failed in these steps.
    fn late_losses(&mut self, losses: &mut Vec<f64>) -> Result<()> {
        let _ = losses;
        Ok(())
    }

    /// Asks for the outputs of a batch, and with `labels` for its loss as well, of a model that [takes batches](Model::TAKES_BATCHES): the batch is copied and need
    /// not be there any longer. [`end_evaluation`](Model::end_evaluation) gives them, of batches that were begun in their order. O(values of the batch); what was
    /// begun before is not waited for, so that a batch is copied while the one before it is computed.
    ///
    /// # Errors
    ///
    /// As [`loss`](Model::loss), or without `labels` as [`forward`](Model::forward), before anything is computed, and what failed before; nothing was begun then.
    /// [`ModelError::NotBegun`] unless [`TAKES_BATCHES`](Model::TAKES_BATCHES).
    fn begin_evaluation(&mut self, batch: &Self::Batch<'_>, labels: bool) -> Result<()> {
        let _ = (batch, labels);
        Err(ModelError::NotBegun { model: Self::NAME }.into())
    }

    /// Waits for the first of the evaluations that were [begun](Model::begin_evaluation) and not ended: its outputs are [`outputs`](Model::outputs) then.
    /// Returns its loss, not a number where that was not asked for.
    ///
    /// # Errors
    ///
    /// [`ModelError::NotBegun`] where there is none; what failed while it was computed.
    fn end_evaluation(&mut self) -> Result<f64> {
        Err(ModelError::NotBegun { model: Self::NAME }.into())
    }

    /// Brings parameters, and their states in `updater`, back to the host where the model keeps them elsewhere: nothing where it does not.
    /// [`Updater::flush_model`] asks for it.
    ///
    /// # Errors
    ///
    /// What failed where they were.
    fn to_host<R: UpdateRule>(&mut self, updater: &mut Updater<R, Self::Element>) -> Result<()> {
        let _ = updater;
        Ok(())
    }

    /// The gradient of parameter `index`, of the last [`loss_and_grads`](Model::loss_and_grads), to
    /// be changed. `None` of a frozen one. Workers, clipping by the norm and rules that correct
    /// gradients need it of all others.
    fn gradient_mut(&mut self, index: usize) -> Option<GradientMut<'_, Self::Element>> {
        let _ = index;
        None
    }

    /// How many threads the calls that follow may use, where their work is worth it: one at first. The results have the same
    /// bits whatever this says. A model written by hand may do nothing.
    fn set_parallel(&mut self, parallel: Parallel) {
        let _ = parallel;
    }

    /// Output `index` of the last call that computed outputs, if it is dense and holds numbers.
    fn dense_output(&self, index: usize) -> Option<DenseView<'_, Self::Element>>;

    /// The scores that the first output of the last call that computed outputs is a link of, in the output's shape: what metrics see in its place.
    /// `None` where it is no link of scores that are there, and of a model written by hand without this, whose metrics see the output.
    fn linked_scores(&self) -> Option<Scores<'_, Self::Element>> {
        None
    }

    /// The parameters, in the order of [`PARAMETERS`](Model::PARAMETERS).
    fn parameters(&self) -> Vec<ParameterRef<'_, Self::Element>>;

    /// The parameters, to be written.
    fn parameters_mut(&mut self) -> Vec<ParameterMut<'_, Self::Element>>;
}

/// Scores, and the link that makes predictions of them.
#[derive(Clone, Copy, Debug)]
pub struct Scores<'a, T: Float> {
    /// The link.
    pub link: Link,
    /// The scores: `[n]` or `[n, k]`.
    pub values: DenseView<'a, T>,
}

/// What gives the table of a parameter, by its name and shape.
pub type MakeTable<'a, T> = dyn FnMut(&'static str, Shape) -> Result<Table<T>> + 'a;

/// Where a model finds the arrays of a batch: by the position of the declaration in [`Model::INPUTS`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no arrays for a model of `{T}`",
    note = "batches of a data set of the same element type have them: write `data.cast::<{T}>()?`, \
            or the element type of the data as `dtype` in the model"
)]
pub trait BatchSource<'a, T: Float> {
    /// The rows of the batch.
    fn n_rows(&self) -> usize;
    /// Input `index` as csr.
    fn csr(&self, index: usize) -> Result<CsrView<'a, T>>;
    /// Input `index` as a csr that holds a pattern only. One that has values is read once for each batch, unless a source
    /// knows that they are 1.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotUnit`](crate::formats::FormatError::NotUnit) for the first value that is not 1.
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

/// What the compiler decided, as data: a table by `Display`, Graphviz's language by
/// [`to_dot`](PlanTable::to_dot), a picture by [`to_svg`](PlanTable::to_svg).
pub type Plan = PlanTable<'static>;

/// An extent of a declaration.
pub type Extent = sparse_core::inspect::Extent<'static>;

/// Whether a declaration is needed to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputRole {
    /// `input`: needed for everything.
    Input,
    /// `label`: needed for the loss only.
    Label,
}

/// A declared input or label.
#[derive(Clone, Copy, Debug)]
pub struct InputInfo {
    /// Its name.
    pub name: &'static str,
    /// Input or label.
    pub role: InputRole,
    /// Its storage type.
    pub storage: Storage,
    /// Its element type.
    pub element: ElementType,
    /// Its declared shape.
    pub shape: &'static [Extent],
    /// What a label must be for the losses that read it.
    pub label: LabelKind,
}

impl InputInfo {
    /// Its shape without rows: that of a label that nobody reads.
    pub(crate) fn without_rows(&self) -> Shape {
        let extents = self.shape.iter().enumerate();
        let extents: Vec<usize> = extents
            .map(|(axis, extent)| match extent {
                Extent::Constant(extent) if axis > 0 => *extent,
                _ => 0,
            })
            .collect();
        Shape::try_new(&extents).unwrap_or_default()
    }
}

/// What the values of a label mean, as the loss that reads it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelKind {
    /// Any finite number.
    Real,
    /// -1 or 0 for the negative class, 1 for the positive one, or a probability in [0, 1].
    Binary,
    /// A number that is not negative, such as a count.
    Count,
    /// An integer class id below the number of classes.
    Class,
}

impl LabelKind {
    /// Whether a label that is a number may be read so.
    #[inline]
    pub(crate) fn fits<T: Float>(self, label: T) -> bool {
        match self {
            LabelKind::Binary => label == -T::one() || (label >= T::zero() && label <= T::one()),
            LabelKind::Count => label >= T::zero(),
            LabelKind::Real | LabelKind::Class => true,
        }
    }

    /// What a label must be, in words.
    pub(crate) fn expectation(self) -> &'static str {
        match self {
            LabelKind::Binary => {
                "a label of a binary loss, -1 or 0, and 1, or a probability in [0, 1]"
            }
            LabelKind::Count => "a count or a probability, which are not negative",
            LabelKind::Real => "any finite number",
            LabelKind::Class => "the id of a class",
        }
    }
}

/// A declared parameter.
#[derive(Clone, Copy, Debug)]
pub struct ParameterInfo {
    /// Its name.
    pub name: &'static str,
    /// Its storage type.
    pub storage: Storage,
    /// The storage type of its gradient, or `None` for a frozen one.
    pub gradient: Option<Storage>,
    /// Its declared shape.
    pub shape: &'static [Extent],
    /// The rows that a step reads of it. [`Model::rows_read`] has those of a batch.
    pub reads: RowSet,
    /// The rows that its gradient stores, none of a frozen one. [`Model::rows_written`] has those of a batch.
    pub writes: RowSet,
    /// Whether weight decay and L1 shrink it: true for a factor of a product, a table of a look-up
    /// or a bag, and what is multiplied with a csr; false for what is only added or multiplied by
    /// broadcasting. `param(decay)` and `param(no_decay)` overrule its uses.
    pub decays: bool,
    /// Whether it is a state, which is carried over from batch to batch.
    pub is_state: bool,
}

/// A declared output.
#[derive(Clone, Copy, Debug)]
pub struct OutputInfo {
    /// Its name.
    pub name: &'static str,
    /// Its inferred storage type.
    pub storage: Storage,
    /// Its element type: the model's, or `u64` for ids.
    pub element: ElementType,
}
