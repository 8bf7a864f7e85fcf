//! Evaluation of a model during training.

use super::report::ScoreReport;
use super::score::{check_source, score_on};
use crate::error::Result;
use crate::metric::Metric;
use nnz_data::{DataSource, Dataset};
use nnz_step::model::Model;
use sparse_core::element::Float;

/// The evaluation of a [`Trainer`](super::Trainer) after every epoch: none, a source, or an
/// `Option` of one; or your own [`evaluate`](Self::evaluate), which may compute anything about the
/// model.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no data to evaluate a model of `{T}` on",
    note = "give a reference to a data set of the element type of the model: `.evaluation(&data)`; \
            one of another element type becomes one by `data.cast::<{T}>()?`"
)]
pub trait Evaluation<T: Float> {
    /// Whether reports have exactly the metrics of the trainer. A callback that
    /// [watches](super::Callback::watches) another one is then an error before the first step, and
    /// not after the first epoch.
    const BY_TRAINER: bool = false;

    /// The source.
    type Source: DataSource<T>;

    /// The source, if there is one. It is checked against the model's declarations before the first
    /// step.
    fn source(&self) -> Option<&Self::Source>;

    /// The report of an epoch, for the parameters after it: by default the
    /// [`score()`](super::score()) on the source, by the trainer's `metrics`, `rows_at_a_time`. Its
    /// time does not count as training.
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
        let _entered = entered_span();
        score_on("the evaluation data", model, data, metrics, rows_at_a_time).map(Some)
    }
}

fn entered_span() -> tracing::span::EnteredSpan {
    tracing::info_span!("evaluation").entered()
}

/// Refuses data of an evaluation that does not fit the declarations of a model.
pub(super) fn check_evaluation<M: Model, E: Evaluation<M::Element>>(
    evaluation: &E,
    model: &mut M,
    metrics: &[Box<dyn Metric>],
) -> Result<()> {
    evaluation.source().map_or(Ok(()), |data| check_source(model, data, metrics))
}

/// A model that is evaluated on an `E`: any model, where `E` is an [`Evaluation`] of its element
/// type.
///
/// The bound is on the model, which a call of [`fit`](super::Trainer::fit) names, so that data of
/// another element type is told as such: a bound on `E` alone would make the compiler infer the
/// element type from the data, and the model would be the one that does not match.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not evaluated on `{E}`",
    note = "a model is evaluated on a data source of its element type: `&data`, or `&data.cast::<f64>()` for a model of `f64`"
)]
pub trait EvaluatedOn<E>: Model {
    /// `E`.
    type Evaluation: Evaluation<Self::Element>;

    /// The same, as what it is.
    fn evaluation(of: &E) -> &Self::Evaluation;
}

impl<M: Model, E: Evaluation<M::Element>> EvaluatedOn<E> for M {
    type Evaluation = E;

    fn evaluation(of: &E) -> &E {
        of
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
