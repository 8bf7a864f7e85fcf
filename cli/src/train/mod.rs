//! `nnz train`: the models of the examples on files of text, in memory or streamed, under any update rule.
//!
//! ```text
//! cargo run --release -p nnz-cli -- train --model logistic --data a9a.gz --test a9a.t.gz --l2 1e-4
//! cargo run --release -p nnz-cli -- train --model logistic --data clicks.tsv --hash-bits 22 --stream 268435456 --threads 4
//! cargo run --release -p nnz-cli -- train --model logistic --data clicks.tsv --hash-bits 22 --batch-size 8192 --threads 4 --divide
//! ```
//!
//! `nnz predict` writes the outputs of a model that was saved, `nnz inspect` shows it.

mod arguments;
mod fit;
mod keep;
mod optimizer;

use crate::data::Known;
use crate::models::ModelKind;
use crate::{Failure, Program};
use arguments::Arguments;
use fit::{Output, Run};
use nnz::data::AnyDataset;

pub(crate) fn program() -> Program {
    Program { command: Arguments::program(), run: |matches| run(&Arguments::of(matches)?) }
}

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
