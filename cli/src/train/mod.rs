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
//! cargo run --release -p nnz-cli -- train --config clicks.model.run.toml --epochs 20
//! ```
//!
//! `nnz predict` writes the outputs of a model that was saved, `nnz inspect` shows it.

mod arguments;
mod best_epoch;
mod clipping;
pub(crate) mod config;
mod decay;
mod epochs;
mod fit;
mod hyperparameter_flags;
mod keep;
mod loss_numbers;
pub(crate) mod optimizer;
mod run;
mod schedule;
mod sizes;
mod state;
pub(crate) mod weights;

use crate::input::{Format, Known, TwoLabels};
use crate::models::notes::{note_of_read_labels, notes_of_two_labels};
use crate::models::saved::SavedModel;
use crate::models::{ModelKind, Task, fields};
use crate::report::summary::summary;
use crate::report::{self, note, tell, written};
use crate::{Failure, Program};
use arguments::{Arguments, Clip};
use best_epoch::BestEpoch;
use clipping::Clipping;
use config::RunFile;
use fit::FewRules;
use nnz::data::AnyDataset;
use nnz_device::thread_pool;
use run::{Output, Run};

pub(crate) fn program() -> Program {
    let run = |matches: &_| {
        let arguments = Arguments::of(matches)?;
        let file = RunFile::of(&Arguments::program(), &arguments, matches)?;
        run(&arguments)?;
        file.map_or(Ok(()), |file| file.write())
    };
    Program { command: Arguments::program(), run }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    // The fields of features are kept for models that read them.
    let mut reading = arguments.reading.clone();
    reading.reads_fields = arguments.model.reads_fields();
    let reading = &reading;
    if let Some(threads) = reading.threads {
        thread_pool::set_max_threads(threads);
    }
    arguments.check()?;
    decay::check(arguments)?;
    optimizer::check(arguments)??;
    if arguments.init.is_none() {
        optimizer::check_few(arguments.sizes.kind(arguments.model)?, &arguments.optimizer)?;
    }
    reading.check(&arguments.data, arguments.features)?;
    if reading.unknown.is_some() && reading.format_of(arguments.data.first()) == Format::Ratings {
        return Err("--unknown: the model knows the users and items of its training data; `evaluate` and `predict` take others: leave it out, and --skip ROWS for lines of --test with others".into());
    }
    keep::check(arguments)?;
    let init = arguments.init.as_deref().map(SavedModel::open).transpose()?;
    let (reading, known) = match &init {
        Some(saved) => {
            arguments.check_init(saved)?;
            let known = Known { is_scored: false, ..saved.known_of_labelled() };
            (saved.reading(reading, &arguments.data)?, known)
        }
        None => {
            let mut reading = reading.clone();
            reading.find_schema(&arguments.data)?;
            arguments.check_schema(reading.schema.as_deref())?;
            report::reading(&arguments.data, || reading.measure(&arguments.data))?;
            if matches!(arguments.model.task(), Task::Binary | Task::Margin | Task::Classes) {
                report::reading(&arguments.data, || reading.find_label_names(&arguments.data))?;
            }
            report::reading(&arguments.data, || reading.find_field_names(&arguments.data))?;
            report::reading(&arguments.data, || reading.find_hash_bits(&arguments.data))?;
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
        None => arguments.two_labels(&train, &reading.label_names)?,
    };
    if let Some(labels) = two_labels {
        let told = labels.told(&reading.label_names);
        note(format_args!("{}: {told}", arguments.data));
    } else if let ([negative, positive], true) =
        (&reading.label_names[..], arguments.model.has_two_classes())
    {
        let files = &arguments.data;
        note(format_args!("{files}: {positive} is positive, {negative} is negative"));
    }
    let read_labels = labels_as_read(arguments, two_labels, &train);
    let labelled = |data| match two_labels {
        Some(labels) => labels.apply(data),
        None => Ok(data),
    };
    let train = labelled(train)?;
    let has_column = reading.has_weights();
    let kind = weights::kind(arguments, init.as_ref().map(|saved| saved.kind), &train, has_column)?;
    let kind = if init.is_none() { arguments.sizes.kind(kind)? } else { kind };
    optimizer::check_few(kind, &arguments.optimizer)?;
    let (train, held_out) = arguments.held_out(train)?;
    let train = weights::with_class_weights(arguments, two_labels, &reading.label_names, train)?;
    let train = weights::with_any_weights(kind, train)?;
    // Of ids that are known from elsewhere data has none.
    let ids = known.ids.clone();
    let known = Known::of(&train);
    let known = Known { ids: known.ids.clone().or(ids), ..known };
    let test = match &arguments.test {
        Some(files) => {
            let mut reading = reading.clone();
            reading.labels.clone_from(&arguments.test_labels);
            reading.check_formats(files)?;
            let test = report::reading(files, || reading.open(files, &known, false))?;
            note(summary(&reading, files, &test, Some(&known), arguments.features));
            Some(labelled(test)?)
        }
        None => held_out,
    };
    let of_init = init.as_ref().and_then(|saved| saved.metadata.dims.get("fields"));
    let of_format = reading.n_fields(arguments.data.first())?;
    let n_fields = of_init.or(arguments.sizes().fields).or(of_format);
    let n_fields = match n_fields {
        None if kind.reads_fields() => fields::number_of(&train),
        known => known,
    };
    if kind.reads_fields() {
        fields::check(&train, n_fields, &arguments.data.to_string())?;
        for (data, files) in test.iter().zip(&arguments.test) {
            fields::check(data, n_fields, &files.to_string())?;
        }
    }
    let test = test.map(|test| weights::with_any_weights(kind, test)).transpose()?;
    let noted_clip = init.as_ref().and_then(|saved| saved.clip);
    let clip = arguments.clip_predictions.or(noted_clip.map(|(low, high)| Clip::Range(low, high)));
    let clipping = Clipping::new(clip, &train);
    let (mut notes, output) = (reading.notes(arguments.data.first(), &known), Output::default());
    notes.extend(notes_of_two_labels(two_labels));
    notes.extend(read_labels.as_deref().map(note_of_read_labels));
    let best = BestEpoch::new(arguments);
    let run = Run {
        arguments,
        kind,
        train: &train,
        test: test.as_ref(),
        init: init.as_ref(),
        clipping: &clipping,
        notes: &notes,
        n_fields,
        ids: known.ids.as_ref(),
        output: &output,
        best: &best,
    };
    kind.with_few(run, FewRules)?;
    if let Some(line) = best.last_line(arguments).filter(|_| !report::is_quiet()) {
        if arguments.json { tell(line) } else { output.line(&line) }
    }
    written(output.finish())
}

/// The labels of a model of two classes that are read as they are, if the data shows two.
fn labels_as_read(
    arguments: &Arguments,
    two_labels: Option<TwoLabels>,
    data: &AnyDataset,
) -> Option<Vec<f64>> {
    let AnyDataset::Memory(data) = data else { return None };
    let is_read = arguments.model.has_two_classes() && two_labels.is_none();
    let statistics = data.label_statistics();
    let few = statistics.first().and_then(|labels| labels.distinct());
    few.filter(|few| is_read && few.len() == 2).map(<[f64]>::to_vec)
}
