//! A general command line: the models of the examples on files of text, in memory or streamed, under any update rule.
//!
//! ```text
//! cargo run --release --example train -- --model logistic --data a9a.gz --test a9a.t.gz --l2 1e-4
//! cargo run --release --example train -- --model logistic --data clicks.tsv --hash-bits 22 --stream 268435456 --threads 4
//! cargo run --release --example train -- --model logistic --data clicks.tsv --hash-bits 22 --batch-size 8192 --threads 4 --divide
//! ```
//!
//! `predict` writes the outputs of a model that was saved, `inspect` shows it.

mod arguments;
#[path = "../command_line/data.rs"]
mod data;
mod fit;
mod keep;
#[path = "../command_line/models.rs"]
mod models;
mod optimizer;

use arguments::Arguments;
use data::Known;
use fit::{Output, Run};
use models::ModelKind;
use nnz::data::AnyDataset;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::read().unwrap_or_else(|error| error.exit());
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("train: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What went wrong: the library's own error, or the thread pool's.
type Failure = Box<dyn std::error::Error>;

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let reading = &arguments.reading;
    if let Some(threads) = reading.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    arguments.check()?;
    optimizer::check(arguments)??;
    reading.check(&arguments.data, arguments.features)?;
    keep::check(arguments)?;
    let known = Known { n_features: arguments.features, ..Known::default() };
    let find_classes = arguments.model == ModelKind::Softmax;
    let train = match (reading.open(&arguments.data, &known, find_classes)?, reading.threads) {
        (AnyDataset::Memory(data), Some(threads)) if arguments.divide => {
            AnyDataset::Memory(data.divided_for(threads)?)
        }
        (data, _) => data,
    };
    let known = Known::of(&train);
    let test = arguments.test.as_deref();
    let test = test.map(|path| reading.open(path, &known, false)).transpose()?;
    let (notes, output) = (reading.notes(&arguments.data, &known), Output::default());
    let run = Run {
        arguments,
        train: &train,
        test: test.as_ref(),
        notes: &notes,
        ids: known.ids.as_ref(),
        output: &output,
    };
    arguments.model.with(run)?;
    Ok(output.finish()?)
}
