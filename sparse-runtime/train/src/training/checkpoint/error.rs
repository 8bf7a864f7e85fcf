//! Errors of checkpoints.

use nnz_arrays::escaped::Escaped;
use nnz_arrays::formats::Shape;
use sparse_core::storage::{ElementType, Storage};
use std::io;
use std::path::PathBuf;

/// A checkpoint cannot be written, read, or loaded into a model. Every variant names the file.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The system refused an operation.
    #[error("{}: cannot {action}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation.
        action: &'static str,
        /// The message of the system.
        #[source]
        error: io::Error,
    },
    /// The file changed or became unreadable after it had been checked; some parameters are loaded
    /// and others are not.
    #[error("{}: could not be read a second time, the model is loaded in part: load a checkpoint before it is used: {error}", path.display())]
    Interrupted {
        /// The file.
        path: PathBuf,
        /// The message of the system.
        #[source]
        error: io::Error,
    },
    /// The file is not a safetensors file, or is truncated or damaged.
    #[error("{}: not a checkpoint: {}", path.display(), Escaped(problem))]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The fault.
        problem: String,
    },
    /// The file was written by a later version of this library.
    #[error("{}: written in format {found}, but this version of the library reads formats up to {supported}: update it", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The file's format.
        found: u32,
        /// The latest format known here.
        supported: u32,
    },
    /// The values of a parameter, or of the optimizer's state, differ from those written.
    #[error("{}: the values of `{}` are damaged: their checksum is {found:016x}, not {expected:016x}", path.display(), Escaped(name))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The parameter or state.
        name: String,
        /// The checksum of the values read.
        found: u64,
        /// The checksum of the values written.
        expected: u64,
    },
    /// The file holds parameters of another graph.
    #[error(
        "{}: saved from model `{}` (graph {saved:016x}), which is another graph than model `{model}` ({expected:016x}){}",
        path.display(),
        Escaped(saved_model),
        difference.as_ref().map(|difference| format!(": {difference}")).unwrap_or_default()
    )]
    OtherGraph {
        /// The file.
        path: PathBuf,
        /// The model that was saved.
        saved_model: String,
        /// Its graph's fingerprint.
        saved: u64,
        /// The model to be loaded.
        model: &'static str,
        /// Its graph's fingerprint.
        expected: u64,
        /// The first parameter that differs, if one does.
        difference: Option<Box<ParameterMismatch>>,
    },
    /// The weights in the file miss steps.
    #[error("{}: saved within an epoch, with weights that wait for steps without a gradient: resume the run with `Trainer::resume`, or load a checkpoint from the end of an epoch", path.display())]
    Unsettled {
        /// The file.
        path: PathBuf,
    },
    /// The file holds parameters alone.
    #[error("{}: holds the parameters of a model, but no run of training that could be resumed", path.display())]
    NoRun {
        /// The file.
        path: PathBuf,
    },
    /// The run in the file was made with other settings: the continued run would be neither the one
    /// nor the other.
    #[error("{}: the run was made with `{name}` = {}, but here it is {expected}: resume it with the same", path.display(), Escaped(found))]
    Setting {
        /// The file.
        path: PathBuf,
        /// The option or hyperparameter, the first that differs.
        name: String,
        /// In the file.
        found: String,
        /// Here.
        expected: String,
    },
    /// A parameter does not fit.
    #[error("{}: {mismatch}", path.display())]
    Parameter {
        /// The file.
        path: PathBuf,
        /// The first one that does not.
        mismatch: Box<ParameterMismatch>,
    },
    /// Training without locks cannot be resumed to the bit.
    #[error("{}: a run of `fit_hogwild` cannot be saved to be resumed, only its model: what its threads do depends on chance", path.display())]
    Hogwild {
        /// The file that would be written.
        path: PathBuf,
    },
}

sparse_core::debug_of_errors!(CheckpointError);

/// How a parameter in a file differs from the model's.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterMismatch {
    /// The file lacks it.
    #[error("parameter `{parameter}` is not in the file")]
    Missing {
        /// The parameter.
        parameter: String,
    },
    /// The model lacks it.
    #[error("the file has a parameter `{}`, which the model has not", Escaped(parameter))]
    Unexpected {
        /// The parameter.
        parameter: String,
    },
    /// The model has none of the parameters of the file.
    #[error("the file has no parameter of the model (it has: {})", Escaped(found))]
    NothingInCommon {
        /// The parameters of the file.
        found: String,
    },
    /// The storage types differ.
    #[error("parameter `{parameter}` is {found} in the file and {expected} in the model")]
    Storage {
        /// The parameter.
        parameter: String,
        /// In the file.
        found: Storage,
        /// In the model.
        expected: Storage,
    },
    /// The element types differ.
    #[error(
        "parameter `{parameter}` has elements of type {found} in the file and {expected} in the model"
    )]
    Element {
        /// The parameter.
        parameter: String,
        /// In the file.
        found: ElementType,
        /// In the model.
        expected: ElementType,
    },
    /// The shapes differ.
    #[error(
        "parameter `{parameter}` has shape {found} in the file and {expected} in the model: make the model with the dimensions of the file ({})",
        Escaped(dims)
    )]
    Shape {
        /// The parameter.
        parameter: String,
        /// In the file.
        found: Shape,
        /// In the model.
        expected: Shape,
        /// The dimensions that the saved model had.
        dims: String,
    },
}

sparse_core::debug_of_errors!(ParameterMismatch);
