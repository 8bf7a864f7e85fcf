//! Data that a model is evaluated on while it is trained.

use crate::data::{DataSource, Dataset};
use sparse_core::element::Float;

/// What a [`Trainer`](super::Trainer) evaluates on after every epoch: nothing, a source, or perhaps a source.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no data to evaluate a model of `{T}` on",
    note = "give a reference to a data set of the element type of the model: `.evaluation(&data)`"
)]
pub trait Evaluation<T: Float> {
    /// The source.
    type Source: DataSource<T>;

    /// The source, if there is one.
    fn source(&self) -> Option<&Self::Source>;
}

/// No evaluation.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvaluation;

impl<T: Float> Evaluation<T> for NoEvaluation {
    type Source = Dataset<T>;

    fn source(&self) -> Option<&Dataset<T>> {
        None
    }
}

impl<T: Float, D: DataSource<T>> Evaluation<T> for &D {
    type Source = D;

    fn source(&self) -> Option<&D> {
        Some(self)
    }
}

impl<T: Float, D: DataSource<T>> Evaluation<T> for Option<&D> {
    type Source = D;

    fn source(&self) -> Option<&D> {
        *self
    }
}
