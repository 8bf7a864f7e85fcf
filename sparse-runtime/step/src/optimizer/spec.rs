//! Settings of an updater for one parameter.

use crate::model::{AnyModel, Model};
use nnz_arrays::in_library;
use sparse_core::element::Float;
use sparse_core::storage::Storage;
use std::borrow::Cow;

/// A parameter for an updater: a table of rows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ParameterSpec {
    /// The name, for messages and checkpoints.
    pub name: Cow<'static, str>,
    /// The number of rows: the first extent.
    pub n_rows: usize,
    /// The elements of one row: the product of the other extents.
    pub row_size: usize,
    /// The storage type of the gradient, or `None` for a frozen parameter.
    pub gradient: Option<Storage>,
    /// Multiplies the rule's penalties, weight decay and L1; 0 for a parameter that is not decayed.
    pub weight_decay_scale: f64,
    /// Multiplies the learning rate, ≥ 0.
    pub learning_rate_scale: f64,
}

impl ParameterSpec {
    /// A parameter of `n_rows × row_size` elements, with full decay and learning rate.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        n_rows: usize,
        row_size: usize,
        gradient: Option<Storage>,
    ) -> Self {
        ParameterSpec {
            name: name.into(),
            n_rows,
            row_size,
            gradient,
            weight_decay_scale: 1.0,
            learning_rate_scale: 1.0,
        }
    }

    /// The parameters of a model, in the order of [`Model::PARAMETERS`].
    ///
    /// Weight decay and L1 shrink the parameters that [decay](crate::model::ParameterInfo::decays)
    /// by their uses. A bias or a scale, which shrinking would only distort, is exempt (scale 0).
    /// Set [`weight_decay_scale`](Self::weight_decay_scale) to change that.
    pub fn of_model<M: Model>(model: &M) -> Vec<ParameterSpec> {
        ParameterSpec::of_any(model)
    }

    fn of_any<T: Float>(model: &dyn AnyModel<T>) -> Vec<ParameterSpec> {
        in_library!(<T> ParameterSpec::of_parameters::<T> => (
            model: &dyn AnyModel<T>,
        ) -> Vec<ParameterSpec>)
    }

    fn of_parameters<T: Float>(model: &dyn AnyModel<T>) -> Vec<ParameterSpec> {
        model
            .parameters()
            .iter()
            .zip(model.facts().parameters)
            .map(|(parameter, info)| ParameterSpec {
                name: Cow::Borrowed(info.name),
                n_rows: parameter.shape.n_rows(),
                row_size: parameter.shape.row_size(),
                gradient: info.gradient,
                weight_decay_scale: if info.decays { 1.0 } else { 0.0 },
                learning_rate_scale: 1.0,
            })
            .collect()
    }
}
