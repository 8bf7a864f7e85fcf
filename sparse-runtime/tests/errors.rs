//! What an error says where `main` returns it, whichever layer it is of.

use nnz_optim::{InvalidHyperparameter, RuleError, UnknownRule};
use sparse_runtime::data::{DataError, Place, Problem, ReadError};
use sparse_runtime::formats::FormatError;
use sparse_runtime::initializer::InitializerError;
use sparse_runtime::interpreter::InterpreterError;
use sparse_runtime::kernels::TooManyThreads;
use sparse_runtime::metric::{MetricError, NoValue};
use sparse_runtime::model::{DimsError, ModelError};
use sparse_runtime::optimizer::OptimizerError;
use sparse_runtime::store::{CommunicatorError, StoreError};
use sparse_runtime::training::TrainError;
use sparse_runtime::training::checkpoint::{CheckpointError, ParameterMismatch};
use sparse_runtime::{Error, Result};
use std::error::Error as StdError;
use std::path::{Path, PathBuf};

/// The text that `fn main() -> Result<(), E>` prints after `Error: `.
fn printed(error: impl StdError) -> String {
    let (debug, text) = (format!("{error:?}"), error.to_string());
    assert_eq!(debug, text);
    assert_eq!(format!("{error:#?}"), text);
    debug
}

#[test]
fn an_error_that_main_returns_is_printed_as_a_sentence() {
    let model = "Linear";
    let threads = TooManyThreads::check("fit", usize::MAX).unwrap_err();
    let place = Place { file: "a.svm".into(), line: 3, column: 7 };
    let parameter = || "w".to_owned();
    let hyperparameter =
        || InvalidHyperparameter { rule: "sgd", name: "l1", value: -1.0, bound: "at least 0" };
    let texts = [
        printed(FormatError::Density { density: 2.0 }),
        printed(DimsError::Unknown { model, name: "k".into(), known: "d".into() }),
        printed(ModelError::NoLoss { model }),
        printed(DataError::ZeroBatchSize),
        printed(Problem::IndexZero),
        printed(ReadError::Syntax { place, problem: Problem::IndexZero }),
        printed(ReadError::Io {
            file: "a.svm".into(),
            source: std::io::ErrorKind::NotFound.into(),
        }),
        printed(MetricError::TopNone { metric: "top-k" }),
        printed(NoValue::EqualLabels),
        printed(TrainError::NoRows),
        printed(CheckpointError::NoRun { path: "m.safetensors".into() }),
        printed(CheckpointError::Io {
            path: PathBuf::from("m.safetensors"),
            action: "open",
            error: std::io::ErrorKind::PermissionDenied.into(),
        }),
        printed(ParameterMismatch::Missing { parameter: parameter() }),
        printed(OptimizerError::Frozen { parameter: parameter() }),
        printed(StoreError::KeyExists { key: "w".into() }),
        printed(CommunicatorError::NoWorkers),
        printed(InitializerError::NegativeDeviation { std: -1.0 }),
        printed(InterpreterError::Missing { name: "w".into() }),
        printed(threads),
        printed(hyperparameter()),
        printed(RuleError::from(hyperparameter())),
        printed(UnknownRule { name: "sdg".into() }),
        printed(Error::from(TrainError::from(threads))),
        printed(Error::from(Box::new(ParameterMismatch::Missing { parameter: parameter() }))),
    ];
    for text in texts {
        assert!(text.contains(' ') && !text.contains(" { "), "{text}");
    }
}

#[test]
fn errors_of_the_library_become_those_of_a_program() {
    fn boxed() -> Result<(), Box<dyn StdError + Send + Sync>> {
        Err(Error::from(DataError::ZeroBatchSize))?
    }
    let error = boxed().unwrap_err();
    assert_eq!(format!("{error:?}"), "the batch size is 0: a batch has at least one row");
    assert!(matches!(error.downcast_ref(), Some(Error::Data(DataError::ZeroBatchSize))));
}

/// A derived `Debug` would print fields if `main` returns the error.
#[test]
fn no_public_error_derives_debug() {
    let mut folders = vec![
        Path::new(env!("CARGO_MANIFEST_DIR")).join("."),
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../sparse-core/src"),
    ];
    let (mut found, mut derived) = (0, Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for (at, _) in text.match_indices(concat!("thiserror::", "Error)]")) {
                let line = text[..at].lines().last().unwrap_or_default();
                let item = text[at..].split("pub").nth(1).unwrap_or_default();
                found += 1;
                if line.contains("Debug") && item.starts_with(' ') {
                    derived.push(path.clone());
                }
            }
        }
    }
    assert!(found > 15, "{found} errors");
    assert!(derived.is_empty(), "`debug_of_errors!` is for {derived:?}");
}
