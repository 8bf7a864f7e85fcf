//! The one error type of the library: a room's typed error, transparently.

/// Shorthand for results of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Anything that can go wrong. Each variant is one room's own error type.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An array is not valid, or two do not go together.
    #[error(transparent)]
    Format(#[from] crate::formats::FormatError),
    /// The dimensions given do not fit the model.
    #[error(transparent)]
    Dims(#[from] crate::model::DimsError),
    /// A batch does not fit the model.
    #[error(transparent)]
    Model(#[from] crate::model::ModelError),
    /// Data is not valid, or is not what a model declares.
    #[error(transparent)]
    Data(#[from] crate::data::DataError),
    /// A file of data cannot be read or written.
    #[error(transparent)]
    Read(#[from] crate::data::ReadError),
    /// Outputs or labels that a metric has no meaning for.
    #[error(transparent)]
    Metric(#[from] crate::metric::MetricError),
    /// Training, scoring or predicting cannot go on.
    #[error(transparent)]
    Train(#[from] crate::training::TrainError),
    /// A checkpoint cannot be written, read, or loaded into a model.
    #[error(transparent)]
    Checkpoint(#[from] crate::training::checkpoint::CheckpointError),
    /// The parameters of two models do not go together.
    #[error(transparent)]
    Parameter(#[from] Box<crate::training::checkpoint::ParameterMismatch>),
    /// An update does not fit the parameters.
    #[error(transparent)]
    Optimizer(#[from] crate::optimizer::OptimizerError),
    /// Workers and their store do not go together.
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    /// There is no GPU to use.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Cuda(#[from] crate::device::cuda::CudaError),
    /// An initializer has senseless numbers.
    #[error(transparent)]
    Initializer(#[from] crate::initializer::InitializerError),
    /// A schedule was given a senseless hyperparameter.
    #[error(transparent)]
    Hyperparameter(#[from] sparse_core::update_rules::InvalidHyperparameter),
    /// An update rule cannot be used as it stands.
    #[error(transparent)]
    Rule(#[from] sparse_core::update_rules::RuleError),
    /// There is no update rule of that name.
    #[error(transparent)]
    UnknownRule(#[from] sparse_core::update_rules::UnknownRule),
}
