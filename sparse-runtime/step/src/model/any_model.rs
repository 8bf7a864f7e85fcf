//! A model without its type: what is done once an epoch or more seldom is compiled once for all
//! models of an element type.

use super::rows::RowIds;
use super::{
    BatchSource, Dims, GradientMut, InputInfo, MakeTable, Model, ModelError, OutputInfo,
    ParameterInfo, ParameterMut, ParameterRef, Scores,
};
use crate::error::Result;
use nnz_arrays::formats::{CsrView, DenseView, IdsView, RowIdsView, RowSparseView};
use sparse_core::element::{Float, Unit};

/// What the source of a model says.
#[derive(Clone, Copy, Debug)]
pub struct ModelFacts {
    /// [`Model::NAME`].
    pub name: &'static str,
    /// [`Model::FINGERPRINT`].
    pub fingerprint: u64,
    /// [`Model::INPUTS`].
    pub inputs: &'static [InputInfo],
    /// [`Model::PARAMETERS`].
    pub parameters: &'static [ParameterInfo],
    /// [`Model::OUTPUTS`].
    pub outputs: &'static [OutputInfo],
    /// [`Model::TAKES_BATCHES`].
    pub takes_batches: bool,
    /// [`Model::WRITES_STATES`].
    pub writes_states: bool,
}

impl ModelFacts {
    /// Those of a model.
    pub fn of<M: Model>() -> Self {
        ModelFacts {
            name: M::NAME,
            fingerprint: M::FINGERPRINT,
            inputs: M::INPUTS,
            parameters: M::PARAMETERS,
            outputs: M::OUTPUTS,
            takes_batches: M::TAKES_BATCHES,
            writes_states: M::WRITES_STATES,
        }
    }
}

/// A model without its type. Each method is that of [`Model`] with its name; a batch is bound at
/// each call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a model of `{T}`",
    note = "every model is one of its element type: see `Model`"
)]
pub trait AnyModel<T: Float> {
    /// What its source says.
    fn facts(&self) -> ModelFacts;

    /// As [`Model::dims`].
    fn dims(&self) -> &Dims;

    /// As [`Model::parameters`].
    fn parameters(&self) -> Vec<ParameterRef<'_, T>>;

    /// As [`Model::parameters_mut`].
    fn parameters_mut(&mut self) -> Vec<ParameterMut<'_, T>>;

    /// As [`Model::gradient_mut`].
    fn gradient_mut(&mut self, index: usize) -> Option<GradientMut<'_, T>>;

    /// As [`Model::from_tables`], with the dimensions of this model.
    fn with_tables<'m>(&self, table: &mut MakeTable<'_, T>) -> Result<Box<dyn AnyModel<T> + 'm>>
    where
        Self: 'm;

    /// A clone.
    fn copy<'m>(&self) -> Box<dyn AnyModel<T> + 'm>
    where
        Self: 'm;

    /// As [`Model::check_batch`].
    fn check_batch(&self, batch: &dyn BatchSource<'_, T>, labels: bool) -> Result<()>;

    /// As [`Model::rows_read`].
    fn rows_read<'r>(
        &self,
        batch: &dyn BatchSource<'_, T>,
        index: usize,
        rows: &'r mut RowIds,
    ) -> Result<RowIdsView<'r>>;

    /// As [`Model::forward`].
    fn forward(&mut self, batch: &dyn BatchSource<'_, T>) -> Result<()>;

    /// As [`Model::forward_carrying`].
    fn forward_carrying(&mut self, batch: &dyn BatchSource<'_, T>) -> Result<()>;

    /// As [`Model::loss`].
    fn loss(&mut self, batch: &dyn BatchSource<'_, T>) -> Result<f64>;

    /// As [`Model::loss_carrying`].
    fn loss_carrying(&mut self, batch: &dyn BatchSource<'_, T>) -> Result<f64>;

    /// As [`Model::loss_and_grads`].
    fn loss_and_grads(&mut self, batch: &dyn BatchSource<'_, T>) -> Result<f64>;

    /// As [`Model::begin_evaluation`].
    fn begin_evaluation(&mut self, batch: &dyn BatchSource<'_, T>, labels: bool) -> Result<()>;

    /// As [`Model::end_evaluation`].
    fn end_evaluation(&mut self) -> Result<f64>;

    /// As [`Model::dense_output`].
    fn dense_output(&self, index: usize) -> Option<DenseView<'_, T>>;

    /// As [`Model::linked_scores`].
    fn linked_scores(&self) -> Option<Scores<'_, T>>;
}

impl<M: Model> AnyModel<M::Element> for M {
    fn facts(&self) -> ModelFacts {
        ModelFacts::of::<M>()
    }

    fn dims(&self) -> &Dims {
        Model::dims(self)
    }

    fn parameters(&self) -> Vec<ParameterRef<'_, M::Element>> {
        Model::parameters(self)
    }

    fn parameters_mut(&mut self) -> Vec<ParameterMut<'_, M::Element>> {
        Model::parameters_mut(self)
    }

    fn gradient_mut(&mut self, index: usize) -> Option<GradientMut<'_, M::Element>> {
        Model::gradient_mut(self, index)
    }

    fn with_tables<'m>(
        &self,
        table: &mut MakeTable<'_, M::Element>,
    ) -> Result<Box<dyn AnyModel<M::Element> + 'm>>
    where
        Self: 'm,
    {
        Ok(Box::new(M::from_tables(Model::dims(self).clone(), table)?))
    }

    fn copy<'m>(&self) -> Box<dyn AnyModel<M::Element> + 'm>
    where
        Self: 'm,
    {
        Box::new(self.clone())
    }

    fn check_batch(&self, batch: &dyn BatchSource<'_, M::Element>, labels: bool) -> Result<()> {
        Model::check_batch(self, &self.bind(&Source(batch))?, labels)
    }

    fn rows_read<'r>(
        &self,
        batch: &dyn BatchSource<'_, M::Element>,
        index: usize,
        rows: &'r mut RowIds,
    ) -> Result<RowIdsView<'r>> {
        Model::rows_read(self, &self.bind(&Source(batch))?, index, rows)
    }

    fn forward(&mut self, batch: &dyn BatchSource<'_, M::Element>) -> Result<()> {
        let batch = self.bind(&Source(batch))?;
        Model::forward(self, &batch).map(|_| ())
    }

    fn forward_carrying(&mut self, batch: &dyn BatchSource<'_, M::Element>) -> Result<()> {
        let batch = self.bind(&Source(batch))?;
        Model::forward_carrying(self, &batch).map(|_| ())
    }

    fn loss(&mut self, batch: &dyn BatchSource<'_, M::Element>) -> Result<f64> {
        let batch = self.bind(&Source(batch))?;
        Model::loss(self, &batch)
    }

    fn loss_carrying(&mut self, batch: &dyn BatchSource<'_, M::Element>) -> Result<f64> {
        let batch = self.bind(&Source(batch))?;
        Model::loss_carrying(self, &batch)
    }

    fn loss_and_grads(&mut self, batch: &dyn BatchSource<'_, M::Element>) -> Result<f64> {
        let batch = self.bind(&Source(batch))?;
        Model::loss_and_grads(self, &batch)
    }

    fn begin_evaluation(
        &mut self,
        batch: &dyn BatchSource<'_, M::Element>,
        labels: bool,
    ) -> Result<()> {
        let batch = self.bind(&Source(batch))?;
        Model::begin_evaluation(self, &batch, labels)
    }

    fn end_evaluation(&mut self) -> Result<f64> {
        Model::end_evaluation(self)
    }

    fn dense_output(&self, index: usize) -> Option<DenseView<'_, M::Element>> {
        Model::dense_output(self, index)
    }

    fn linked_scores(&self) -> Option<Scores<'_, M::Element>> {
        Model::linked_scores(self)
    }
}

/// The gradient of a parameter, of the last [`loss_and_grads`](Model::loss_and_grads). `None` for a
/// frozen one.
///
/// # Errors
///
/// [`ModelError::NoGradient`] for a model written by hand that does not give it.
pub(crate) fn trained_gradient<'m, T: Float>(
    model: &'m mut dyn AnyModel<T>,
    index: usize,
) -> Result<Option<GradientMut<'m, T>>> {
    let ModelFacts { name, parameters, .. } = model.facts();
    let info = parameters.get(index).filter(|info| info.gradient.is_some());
    let Some(info) = info else { return Ok(None) };
    match model.gradient_mut(index) {
        None => Err(ModelError::NoGradient { model: name, parameter: info.name }.into()),
        gradient => Ok(gradient),
    }
}

/// A source of arrays without its type.
struct Source<'s, 'b, T: Float>(&'s dyn BatchSource<'b, T>);

impl<'b, T: Float> BatchSource<'b, T> for Source<'_, 'b, T> {
    fn n_rows(&self) -> usize {
        self.0.n_rows()
    }

    fn csr(&self, index: usize) -> Result<CsrView<'b, T>> {
        self.0.csr(index)
    }

    fn unit(&self, index: usize) -> Result<CsrView<'b, Unit>> {
        self.0.unit(index)
    }

    fn dense(&self, index: usize) -> Result<DenseView<'b, T>> {
        self.0.dense(index)
    }

    fn ids(&self, index: usize) -> Result<IdsView<'b>> {
        self.0.ids(index)
    }

    fn row_sparse(&self, index: usize) -> Result<RowSparseView<'b, T>> {
        self.0.row_sparse(index)
    }
}
