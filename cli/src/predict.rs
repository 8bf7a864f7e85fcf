//! `nnz predict`: the outputs of a model that `nnz train --save` wrote, for every row of a file.
//!
//! ```text
//! cargo run --release -p nnz-cli -- predict --model model.safetensors --data clicks.svm \
//!     --output scores.tsv
//! ```

use crate::changed::Change;
use crate::data::{Known, Reading, tell_skipped};
use crate::files::{beside, check_not_read, check_writable};
use crate::models::{ModelKind, ModelVisitor};
use crate::notes::{check_ids, classes, clip};
use crate::printed::escaped;
use crate::{Failure, Program};
use clap::{CommandFactory, FromArgMatches, Parser};
use nnz::data::{AnyDataset, IdMap};
use nnz::prelude::*;
use nnz::training::checkpoint::CheckpointMetadata;
use nnz::training::{save_changed_predictions, write_changed_predictions};
use std::io::{self, StdoutLock, Write};
use std::path::PathBuf;

/// Writes the outputs of a model that `train --save` wrote, a line for each sample of the data, in
/// order.
///
/// Blank lines and comments are no samples, and have no line: take them out of the data where
/// outputs are to stand beside its lines. Of words with --no-labels each line is a sample, a blank
/// one an empty text. A sample that cannot be read is an error, and `--skip` is refused: outputs
/// after it would stand beside other samples.
///
/// A line has the numbers of all outputs, separated by tabs: the probabilities of the classes in
/// the order of their labels, which `inspect` shows. Predictions are cut to a range if `train` was
/// told to (--clip-predictions). What must be said of the data is what was said to `train`; its
/// format and schema, how it was hashed, and from where columns were counted, is in the file.
#[derive(Debug, Parser)]
#[command(name = "predict")]
struct Arguments {
    /// The model's file.
    #[arg(long)]
    model: PathBuf,
    /// The data; its labels are not looked at.
    #[arg(long)]
    data: PathBuf,
    /// The data has no labels: lines of libffm begin with an entry, those of words with a text,
    /// ratings are a user and an item, and csv and criteo have no column for what the schema calls
    /// a label.
    #[arg(long)]
    no_labels: bool,
    /// softmax: write the label of the most probable class in the place of the probabilities.
    #[arg(long)]
    print_label: bool,
    #[command(flatten)]
    reading: Reading,
    /// Where to write, whole or not at all; to the standard output if not said.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Rows that are evaluated at a time.
    #[arg(long, default_value_t = 1024)]
    batch_size: usize,
}

pub(crate) fn program() -> Program {
    let run = |matches: &_| run(&Arguments::from_arg_matches(matches)?);
    Program { command: Arguments::command(), run }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let path = &arguments.model;
    let (saved, own_ids) = checkpoint::read_ids(path)?;
    let kind = ModelKind::of_name(&saved.model).ok_or_else(|| {
        format!("{}: `{}` is not a model of `train`", path.display(), escaped(&saved.model))
    })?;
    if arguments.reading.skip.is_some() {
        let message = "--skip would leave lines out, and those after them would stand beside other samples: correct the data, or take the lines out of it";
        return Err(message.into());
    }
    let labels = classes(&saved.notes)?;
    let change = match (arguments.print_label, labels) {
        (true, Some(labels)) => Some(Change::Label(labels)),
        (true, None) => {
            let path = path.display();
            return Err(format!(
                "--print-label: `{path}` has no labels of classes, which `train --model softmax` keeps: leave it out, or train again"
            )
            .into());
        }
        (false, _) => clip(&saved.notes)?.map(|(low, high)| Change::Clip(low, high)),
    };
    let own = |name: &str| {
        let found = own_ids.iter().find(|(known, _)| known == name);
        found.map(|(_, ids)| ids.clone())
    };
    // Of files of before they are in two files beside the model's.
    let ids = |ending| IdMap::read(beside(path, ending));
    let known = Known {
        n_features: saved.dims.get("d"),
        index_base: None,
        classes: None,
        no_labels: arguments.no_labels,
        ids: match (kind, own("user"), own("item")) {
            (ModelKind::MatrixFactorization, Some(users), Some(items)) => Some((users, items)),
            (ModelKind::MatrixFactorization, ..) => Some((ids("users")?, ids("items")?)),
            _ => None,
        },
    };
    if let Some(ids) = &known.ids {
        check_ids(path, &saved.notes, ids)?;
    }
    if let Some(output) = &arguments.output {
        let ids = ["users", "items"].map(|ending| beside(path, ending));
        let data = arguments.reading.files([&arguments.data]);
        let read = [path].into_iter().chain(&data).chain(&ids);
        check_not_read("--output", output, read.map(PathBuf::as_path))?;
        check_writable("--output", output)?;
    }
    let mut reading = arguments.reading.clone();
    reading.adopt(&saved.notes)?;
    reading.check(&arguments.data, None)?;
    let data = reading.open(&arguments.data, &known, false)?;
    kind.with(Predict { arguments, saved: &saved, data: &data, change })?;
    tell_skipped(&data);
    Ok(())
}

struct Predict<'a> {
    arguments: &'a Arguments,
    saved: &'a CheckpointMetadata,
    data: &'a AnyDataset,
    change: Option<Change>,
}

impl ModelVisitor for Predict<'_> {
    type Output = Result<()>;

    fn visit<M: Model<Element = f32>>(self, make: fn(Dims, Seed) -> Result<M>) -> Result<()> {
        self.saved.check_dims::<M>()?;
        let mut model = make(self.saved.dims.clone(), Seed(0))?;
        checkpoint::load(&mut model, &self.arguments.model)?;
        let rows = self.arguments.batch_size;
        let mut change = |line: &mut String| {
            if let Some(change) = &self.change {
                change.apply(line);
            }
        };
        let change = &mut change;
        match &self.arguments.output {
            Some(path) => save_changed_predictions(&mut model, self.data, rows, path, change),
            None => {
                let mut output = Output { stdout: io::stdout().lock(), is_closed: false };
                let written =
                    write_changed_predictions(&mut model, self.data, rows, &mut output, change);
                if output.is_closed { Ok(()) } else { written }
            }
        }
    }
}

/// The standard output, until whoever reads has seen enough.
struct Output {
    stdout: StdoutLock<'static>,
    is_closed: bool,
}

impl Output {
    fn told<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            self.is_closed |= error.kind() == io::ErrorKind::BrokenPipe;
            io::Error::new(error.kind(), format!("the standard output: {error}"))
        })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stdout.write(bytes);
        self.told(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.stdout.flush();
        self.told(flushed)
    }
}
