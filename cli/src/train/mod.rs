//! `nnz train`: the models of the examples on files of text, in memory or streamed, under any
//! update rule.
//!
//! ```text
//! cargo run --release -p nnz-cli -- train --model logistic --data a9a.gz --test a9a.t.gz --l2 1e-4
//! cargo run --release -p nnz-cli -- train --model logistic --data clicks.tsv --hash-bits 22 \
//!     --stream 268435456 --threads 4
//! cargo run --release -p nnz-cli -- train --model logistic --data clicks.tsv --hash-bits 22 \
//!     --batch-size 8192 --threads 4 --divide
//! ```
//!
//! `nnz predict` writes the outputs of a model that was saved, `nnz inspect` shows it.

mod arguments;
mod clipping;
mod fit;
mod hyperparameter_flags;
mod keep;
mod optimizer;
mod run;

use crate::data::Known;
use crate::models::ModelKind;
use crate::printed::{self, tell, written};
use crate::summary::summary;
use crate::{Failure, Program};
use arguments::Arguments;
use clipping::Clipping;
use nnz::data::AnyDataset;
use nnz_device::thread_pool;
use run::{Output, Run};

pub(crate) fn program() -> Program {
    Program { command: Arguments::program(), run: |matches| run(&Arguments::of(matches)?) }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let reading = &arguments.reading;
    if let Some(threads) = reading.threads {
        thread_pool::set_max_threads(threads);
    }
    arguments.check()?;
    optimizer::check(arguments)??;
    reading.check(&arguments.data, arguments.features)?;
    keep::check(arguments)?;
    let mut reading = reading.clone();
    printed::reading(&arguments.data, || reading.measure(&arguments.data))?;
    let known = Known { n_features: arguments.features, ..Known::default() };
    let find_classes = arguments.model == ModelKind::Softmax;
    let train =
        printed::reading(&arguments.data, || reading.open(&arguments.data, &known, find_classes));
    let train = match (train?, reading.threads) {
        (AnyDataset::Memory(data), Some(threads)) if arguments.divide => {
            AnyDataset::Memory(data.divided_for(threads)?)
        }
        (data, _) => data,
    };
    tell(summary(&reading, &arguments.data, &train, None, arguments.features));
    let known = Known::of(&train);
    let test = match &arguments.test {
        Some(path) => {
            let test = printed::reading(path, || reading.open(path, &known, false))?;
            tell(summary(&reading, path, &test, Some(&known), arguments.features));
            Some(test)
        }
        None => None,
    };
    let clipping = Clipping::new(arguments.clip_predictions, &train);
    let (notes, output) = (reading.notes(&arguments.data, &known), Output::default());
    let run = Run {
        arguments,
        train: &train,
        test: test.as_ref(),
        clipping: &clipping,
        notes: &notes,
        ids: known.ids.as_ref(),
        output: &output,
    };
    arguments.model.with(run)?;
    written(output.finish())
}
