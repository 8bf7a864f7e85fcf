//! Data that a model is evaluated on while it is trained.

use super::report::ScoreReport;
use super::score::score_on;
use crate::data::{DataSource, Dataset};
use crate::error::Result;
use crate::metric::Metric;
use crate::model::Model;
use sparse_core::element::Float;

/// What a [`Trainer`](super::Trainer) evaluates on after every epoch: nothing, a source, or perhaps a source; or, with an
/// [`evaluate`](Self::evaluate) of your own, whatever you want to know of the model then.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no data to evaluate a model of `{T}` on",
    note = "give a reference to a data set of the element type of the model: `.evaluation(&data)`; \
            one of another element type becomes one by `data.cast::<{T}>()?`"
)]
pub trait Evaluation<T: Float> {
    /// Whether reports have the metrics of the trainer, all of them and no others: then a callback that
    /// [watches](super::Callback::watches) another one is an error before the first step, and not after the first epoch.
    const BY_TRAINER: bool = false;

    /// The source.
    type Source: DataSource<T>;

    /// The source, if there is one. It is compared with what the model declares before the first step.
    fn source(&self) -> Option<&Self::Source>;

    /// What the epoch's report tells, of the parameters after the epoch: by default the [`score()`](super::score()) on the source, by the trainer's
    /// `metrics`, `rows_at_a_time`. What it takes does not count as training.
    ///
    /// # Errors
    ///
    /// Any error ends the run.
    fn evaluate<M: Model<Element = T>>(
        &self,
        model: &mut M,
        metrics: &[Box<dyn Metric>],
        rows_at_a_time: usize,
    ) -> Result<Option<ScoreReport>> {
        let Some(data) = self.source() else { return Ok(None) };
        let _entered = tracing::info_span!("evaluation").entered();
        score_on("the evaluation data", model, data, metrics, rows_at_a_time).map(Some)
    }
}

/// No evaluation.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvaluation;

impl<T: Float> Evaluation<T> for NoEvaluation {
    const BY_TRAINER: bool = true;

    type Source = Dataset<T>;

    fn source(&self) -> Option<&Dataset<T>> {
        None
    }
}

impl<T: Float, D: DataSource<T>> Evaluation<T> for &D {
    const BY_TRAINER: bool = true;

    type Source = D;

    fn source(&self) -> Option<&D> {
        Some(self)
    }
}

impl<T: Float, D: DataSource<T>> Evaluation<T> for Option<&D> {
    const BY_TRAINER: bool = true;

    type Source = D;

    fn source(&self) -> Option<&D> {
        *self
    }
}
