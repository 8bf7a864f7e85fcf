//! `nnz train`: the models of the examples on files of text, in memory or streamed, under any
//! update rule.
//!
//! ```text
//! cargo run --release -p nnz-cli -- train --model logistic --data a9a.gz --test a9a.t.gz --l2 1e-4
//! cargo run --release -p nnz-cli -- train --model logistic --data clicks.tsv --hash-bits 22 \
//!     --stream 268435456 --threads 4
//! cargo run --release -p nnz-cli -- train --model logistic --data clicks.tsv --hash-bits 22 \
//!     --batch-size 8192 --threads 4 --divide
//! cargo run --release -p nnz-cli -- train --model logistic --data monday.svm \
//!     --save clicks.model --save-state --features 1048576
//! cargo run --release -p nnz-cli -- train --model logistic --data tuesday.svm \
//!     --save clicks.model --save-state --init clicks.model
//! ```
//!
//! `nnz predict` writes the outputs of a model that was saved, `nnz inspect` shows it.

mod arguments;
mod clipping;
mod epochs;
mod fit;
mod hyperparameter_flags;
mod keep;
mod optimizer;
mod run;
mod schedule;
mod state;

use crate::input::Known;
use crate::models::ModelKind;
use crate::models::notes::notes_of_two_labels;
use crate::models::saved::SavedModel;
use crate::report::summary::summary;
use crate::report::{self, note, written};
use crate::{Failure, Program};
use arguments::{Arguments, Clip};
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
    let init = arguments.init.as_deref().map(SavedModel::open).transpose()?;
    let (reading, known) = match &init {
        Some(saved) => {
            arguments.check_init(saved)?;
            (saved.reading(reading, &arguments.data)?, saved.known_of_labelled())
        }
        None => {
            let mut reading = reading.clone();
            reading.find_schema(&arguments.data)?;
            arguments.check_schema(reading.schema.as_deref())?;
            report::reading(&arguments.data, || reading.measure(&arguments.data))?;
            (reading, Known { n_features: arguments.features, ..Known::default() })
        }
    };
    let find_classes = arguments.model == ModelKind::Softmax && init.is_none();
    let train =
        report::reading(&arguments.data, || reading.open(&arguments.data, &known, find_classes));
    let train = match (train?, reading.threads) {
        (AnyDataset::Memory(data), Some(threads)) if arguments.divide => {
            AnyDataset::Memory(data.divided_for(threads)?)
        }
        (data, _) => data,
    };
    note(summary(&reading, &arguments.data, &train, None, arguments.features));
    let two_labels = match &init {
        Some(saved) => saved.two_labels,
        None => arguments.two_labels(&train)?,
    };
    if let Some(labels) = two_labels {
        note(format_args!("{}: {labels}", arguments.data.display()));
    }
    let labelled = |data| match two_labels {
        Some(labels) => labels.apply(data),
        None => Ok(data),
    };
    let train = labelled(train)?;
    let (train, held_out) = arguments.held_out(train)?;
    // Of ids that are known from elsewhere data has none.
    let ids = known.ids.clone();
    let known = Known::of(&train);
    let known = Known { ids: known.ids.clone().or(ids), ..known };
    let test = match &arguments.test {
        Some(path) => {
            let test = report::reading(path, || reading.open(path, &known, false))?;
            note(summary(&reading, path, &test, Some(&known), arguments.features));
            Some(labelled(test)?)
        }
        None => held_out,
    };
    let noted_clip = init.as_ref().and_then(|saved| saved.clip);
    let clip = arguments.clip_predictions.or(noted_clip.map(|(low, high)| Clip::Range(low, high)));
    let clipping = Clipping::new(clip, &train);
    let (mut notes, output) = (reading.notes(&arguments.data, &known), Output::default());
    notes.extend(notes_of_two_labels(two_labels));
    let run = Run {
        arguments,
        train: &train,
        test: test.as_ref(),
        init: init.as_ref(),
        clipping: &clipping,
        notes: &notes,
        ids: known.ids.as_ref(),
        output: &output,
    };
    arguments.model.with(run)?;
    written(output.finish())
}
