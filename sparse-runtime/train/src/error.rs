//! The one error type of the library: a room's typed error, transparently.

/// Shorthand for results of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Anything that can go wrong. Each variant is one room's own error type.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An array is not valid, or two do not go together.
    #[error(transparent)]
    Format(#[from] nnz_arrays::formats::FormatError),
    /// The dimensions given do not fit the model.
    #[error(transparent)]
    Dims(#[from] nnz_step::model::DimsError),
    /// A batch does not fit the model.
    #[error(transparent)]
    Model(#[from] nnz_step::model::ModelError),
    /// Data is not valid, or is not what a model declares.
    #[error(transparent)]
    Data(#[from] nnz_data::DataError),
    /// What hands out a batch has not what the model asks of it.
    #[error(transparent)]
    Batch(Box<dyn std::error::Error + Send + Sync>),
    /// A file of data cannot be read or written.
    #[error(transparent)]
    Read(#[from] nnz_data::ReadError),
    /// Outputs or labels that a metric has no meaning for.
    #[error(transparent)]
    Metric(#[from] crate::metric::MetricError),
    /// Training, scoring or predicting cannot go on.
    #[error(transparent)]
    Train(#[from] crate::training::TrainError),
    /// A checkpoint cannot be written, read, or loaded into a model.
    #[error(transparent)]
    Checkpoint(#[from] crate::training::checkpoint::error::CheckpointError),
    /// The parameters of two models do not go together.
    #[error(transparent)]
    Parameter(#[from] Box<crate::training::checkpoint::error::ParameterMismatch>),
    /// An update does not fit the parameters.
    #[error(transparent)]
    Optimizer(#[from] nnz_step::optimizer::OptimizerError),
    /// Workers and their store do not go together.
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    /// There is no GPU to use.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Cuda(#[from] nnz_device::cuda::CudaError),
    /// An initializer has senseless numbers.
    #[error(transparent)]
    Initializer(#[from] nnz_arrays::initializer::InitializerError),
    /// A schedule was given a senseless hyperparameter.
    #[error(transparent)]
    Hyperparameter(#[from] nnz_optim::InvalidHyperparameter),
    /// An update rule cannot be used as it stands.
    #[error(transparent)]
    Rule(#[from] nnz_optim::RuleError),
    /// There is no update rule of that name.
    #[error(transparent)]
    UnknownRule(#[from] nnz_optim::UnknownRule),
}

sparse_core::debug_of_errors!(Error);

/// Workers cannot exchange bytes, as a store says it.
impl From<crate::store::CommunicatorError> for Error {
    fn from(error: crate::store::CommunicatorError) -> Self {
        Error::Store(error.into())
    }
}

/// The error of the part that failed, whichever layer says so.
impl From<nnz_step::Error> for Error {
    fn from(error: nnz_step::Error) -> Self {
        use nnz_step::Error as Step;
        match error {
            Step::Format(error) => Error::Format(error),
            Step::Dims(error) => Error::Dims(error),
            Step::Model(error) => Error::Model(error),
            Step::Batch(error) => match error.downcast() {
                Ok(error) => Error::Data(*error),
                Err(error) => Error::Batch(error),
            },
            Step::Optimizer(error) => Error::Optimizer(error),
            #[cfg(feature = "cuda")]
            Step::Cuda(error) => Error::Cuda(error),
            Step::Initializer(error) => Error::Initializer(error),
            Step::Hyperparameter(error) => Error::Hyperparameter(error),
            Step::Rule(error) => Error::Rule(error),
            Step::UnknownRule(error) => Error::UnknownRule(error),
            // The enum grows with this crate.
            error => Error::Batch(Box::new(error)),
        }
    }
}

/// The error of the part that failed, whichever layer says so.
impl From<nnz_data::Error> for Error {
    fn from(error: nnz_data::Error) -> Self {
        use nnz_data::Error as Data;
        match error {
            Data::Data(error) => Error::Data(error),
            Data::Read(error) => Error::Read(error),
            Data::Format(error) => Error::Format(error),
            Data::Step(error) => error.into(),
            error => Error::Batch(Box::new(error)),
        }
    }
}
