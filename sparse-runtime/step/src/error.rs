//! What can go wrong in a step: the typed error of each part, transparently.

use crate::model::dims::DimsError;
use crate::model::error::ModelError;
use crate::optimizer::error::OptimizerError;
use nnz_arrays::formats::FormatError;
use nnz_arrays::initializer::InitializerError;
use nnz_optim::{InvalidHyperparameter, RuleError, UnknownRule};

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Anything that can go wrong in a step. Each variant is one part's own error type.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An array is not valid, or two do not go together.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The dimensions given do not fit the model.
    #[error(transparent)]
    Dims(#[from] DimsError),
    /// A batch does not fit the model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// What hands out a batch has not what the model asks of it.
    #[error(transparent)]
    Batch(Box<dyn std::error::Error + Send + Sync>),
    /// An update does not fit the parameters.
    #[error(transparent)]
    Optimizer(#[from] OptimizerError),
    /// There is no GPU to use, or it failed.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Cuda(#[from] nnz_device::cuda::CudaError),
    /// An initializer has senseless numbers.
    #[error(transparent)]
    Initializer(#[from] InitializerError),
    /// A schedule was given a senseless hyperparameter.
    #[error(transparent)]
    Hyperparameter(#[from] InvalidHyperparameter),
    /// An update rule cannot be used as it stands.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// There is no update rule of that name.
    #[error(transparent)]
    UnknownRule(#[from] UnknownRule),
}

sparse_core::debug_of_errors!(Error);
