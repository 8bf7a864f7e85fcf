//! `nnz predict`: the outputs of a model that `nnz train --save` wrote, for every row of a file.
//!
//! ```text
//! cargo run --release -p nnz-cli -- predict --model model.safetensors --data clicks.svm \
//!     --output scores.tsv
//! ```

mod ids;
mod lines;

use crate::evaluate::{Evaluate, Measuring};
use crate::files::{beside, check_not_read, check_writable};
use crate::input::unknown_ids::{self, UnknownIds};
use crate::input::{DASH, DataFiles, Format, Known, Reading, tell_skipped};
use crate::models::ModelVisitor;
use crate::models::output_change::Change;
use crate::models::saved::SavedModel;
use crate::report::tell;
use crate::{Failure, Program};
use clap::{CommandFactory, FromArgMatches, Parser};
use lines::{OutputFormat, SampleLines};
use nnz::data::{AnyDataset, OpenQuotes, ReadError};
use nnz::prelude::*;
use nnz::training::{TrainError, save_changed_predictions, write_changed_predictions};
use nnz_device::atomic_write::replace_file;
use std::io::{self, BufRead, BufReader, Read, StdoutLock, Write};
use std::path::{Path, PathBuf};

/// Writes the outputs of a model that `train --save` wrote, a line for each sample of the data, in
/// order.
///
/// Blank lines and comments are no samples, and have no line: take them out of the data where
/// outputs are to stand beside its lines. Of words with --no-labels each line is a sample, a blank
/// one an empty text. A sample that cannot be read is an error, and `--skip` is refused: outputs
/// after it would stand beside other samples.
///
/// A line has the numbers of all outputs, separated by tabs; --output-format says whether it is CSV
/// with a header, JSON, or a row of an array of NumPy instead. Of softmax the numbers are the
/// probabilities of the classes in the order of their labels, which `inspect` shows. Predictions
/// are cut to a range if `train` was told to (--clip-predictions). What must be said of the data is
/// what was said to `train`; its format and schema, how it was hashed, and from where columns were
/// counted, is in the file.
#[derive(Debug, Parser)]
#[command(name = "predict")]
struct Arguments {
    /// The model's file.
    #[arg(long)]
    model: PathBuf,
    /// The data: files that are read as one, or folders of files; labels are not looked at. Of -,
    /// the standard input, each line is scored as it comes.
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    data: Vec<PathBuf>,
    /// The data has no labels, which need not be said of libsvm and vw: lines of libffm begin with
    /// an entry, those of words with a text, ratings are a user and an item, and csv and criteo
    /// have no column for what the schema calls a label.
    #[arg(long)]
    no_labels: bool,
    /// Models of classes: write the label of the predicted class in the place of the numbers: of
    /// softmax the most probable one, of two classes the positive one from --threshold on.
    #[arg(long, visible_alias = "print-label")]
    class: bool,
    /// Write the text of this column before the numbers: of csv a column by its name, of vw the
    /// `tag`.
    #[arg(long, value_name = "COLUMN")]
    id: Option<String>,
    /// What is written: by the ending of --output if not said, .csv, .json, .npy, with the
    /// feature `parquet` .parquet, else tsv.
    #[arg(long, value_enum)]
    output_format: Option<OutputFormat>,
    /// Show the metrics of `evaluate` on the error stream as well; the data has labels.
    #[arg(long)]
    metrics: bool,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    reading: Reading,
    /// Where to write, whole or not at all; to the standard output, as -, if not said.
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
    if arguments.reading.skip.is_some() {
        let message = "--skip would leave lines out, and those after them would stand beside other samples: correct the data, or take the lines out of it";
        return Err(message.into());
    }
    if arguments.metrics && arguments.no_labels {
        return Err("--metrics needs labels, and --no-labels says that there are none".into());
    }
    let path = &arguments.model;
    let saved = SavedModel::open(path)?;
    let change = if arguments.class {
        Some(Change::Label(saved.class_names(arguments.measuring.threshold)?))
    } else {
        saved.clip.map(|(low, high)| Change::Clip(low, high))
    };
    let format = arguments.output_format();
    if format == OutputFormat::Npy && (arguments.class || arguments.id.is_some()) {
        return Err("an array of NumPy has numbers alone: leave --class and --id out, or choose another --output-format".into());
    }
    let titles = if arguments.class { vec!["class".to_owned()] } else { saved.titles() };
    let mut lines = SampleLines::new(format, change, titles, arguments.id.clone());
    let files = DataFiles::of(&arguments.data)?;
    let is_pipe = files.is_standard_input();
    if is_pipe && (arguments.output().is_some() || arguments.metrics) {
        return Err("--data -: predictions of lines of a pipe go to the standard output, as they come, and are not measured: leave --output and --metrics out".into());
    }
    if is_pipe && format.is_whole() {
        return Err("--data -: a file of this --output-format says how many samples it has, which a pipe does not tell: choose another".into());
    }
    if let Some(output) = arguments.output() {
        let ids = ["users", "items"].map(|ending| beside(path, ending));
        let data = arguments.reading.files([&files]);
        let read = [path].into_iter().chain(&data).chain(&ids);
        check_not_read("--output", output, read.map(PathBuf::as_path))?;
        check_writable("--output", output)?;
    }
    let reading = saved.reading(&arguments.reading, &files)?;
    let known = if arguments.metrics {
        saved.known_of_labelled()
    } else {
        // What stands before the entries is not looked at, be it a label or not.
        let format = reading.format_of(files.first());
        let has_entries = matches!(format, Format::Libsvm | Format::Vw)
            || format.is_matrix()
            || format.is_sparse_columns();
        Known { no_labels: arguments.no_labels || has_entries, ..saved.known.clone() }
    };
    if is_pipe {
        let (saved, files, lines) = (&saved, &files, &mut lines);
        let predict = PredictLines { arguments, files, saved, reading, known, lines };
        return saved.kind.with(predict);
    }
    let data = if arguments.metrics {
        saved.open_labelled(&reading, &files)?
    } else {
        let data = reading.open(&files, &known, false)?;
        saved.check_fields(&data, &files)?;
        data
    };
    if let Some(column) = &arguments.id {
        lines.set_ids(ids::of_files(&reading, &files, column, known.no_labels)?);
    }
    unknown_ids::of_data(&data, &reading, &known).tell();
    saved.kind.with(Predict { arguments, saved: &saved, data: &data, lines: &mut lines })?;
    tell_skipped(&data);
    if arguments.metrics {
        let (measuring, rows) = (arguments.measuring, arguments.batch_size);
        let evaluate = Evaluate { saved: &saved, data: &data, measuring, rows };
        tell(saved.kind.with(evaluate)?.table().trim_end());
    }
    Ok(())
}

impl Arguments {
    /// The file to write, if it is not the standard output.
    fn output(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| path.as_os_str() != DASH)
    }

    fn output_format(&self) -> OutputFormat {
        let by_ending = self.output().map_or(OutputFormat::Tsv, OutputFormat::of);
        self.output_format.unwrap_or(by_ending)
    }
}

/// Scores the lines of a pipe as they come.
struct PredictLines<'a> {
    arguments: &'a Arguments,
    files: &'a DataFiles,
    saved: &'a SavedModel,
    reading: Reading,
    known: Known,
    lines: &'a mut SampleLines,
}

impl ModelVisitor for PredictLines<'_> {
    type Output = Result<(), Failure>;

    fn visit<M: Model<Element = f32>>(
        mut self,
        make: fn(Dims, Seed) -> Result<M>,
    ) -> Result<(), Failure> {
        let mut model = self.saved.load_to_score(make)?;
        let mut stdin = BufReader::new(io::stdin());
        let mut output = Output { stdout: io::stdout().lock(), is_closed: false };
        let (mut text, mut lines) = (Vec::new(), 0);
        let mut quotes = self.reading.open_quotes(self.files.first())?;
        let mut unknown = UnknownIds::default();
        while read_lines_there(&mut stdin, &mut text, &mut quotes)? {
            let data = self.reading.read_lines(self.files, &text, lines, &self.known);
            lines += text.iter().filter(|byte| **byte == b'\n').count() as u64;
            let ids =
                self.arguments.id.as_ref().map(|column| {
                    ids::of_lines(&self.reading, &text, column, self.known.no_labels)
                });
            self.reading.after_first_lines();
            let data = match data {
                Ok(data) => data,
                // Blank lines and comments alone.
                Err(error) if is_empty(&error) => continue,
                Err(error) => return Err(error),
            };
            self.saved.check_fields(&data, self.files)?;
            unknown.add(unknown_ids::of_data(&data, &self.reading, &self.known));
            if let Some(ids) = ids {
                self.lines.set_ids(ids?);
            }
            let rows = self.arguments.batch_size;
            let change = &mut |line: &mut String| self.lines.apply(line);
            let written = write_changed_predictions(&mut model, &data, rows, &mut output, change);
            match written {
                _ if output.is_closed => return Ok(()),
                Err(error) => return Err(error.into()),
                Ok(()) => output.flush()?,
            }
        }
        unknown.tell();
        Ok(())
    }
}

fn is_empty(error: &Failure) -> bool {
    matches!(error.downcast_ref(), Some(Error::Read(ReadError::Empty { .. })))
}

/// Waits for a line, and takes those that are there behind it, and more where they end within
/// quotes; false at the end.
fn read_lines_there(
    reader: &mut BufReader<impl Read>,
    text: &mut Vec<u8>,
    quotes: &mut Option<OpenQuotes>,
) -> io::Result<bool> {
    /// Where a quoted field is longer, the quote is taken for a fault.
    const LONGEST: usize = 1 << 24;
    text.clear();
    loop {
        let before = text.len();
        if reader.read_until(b'\n', text)? == 0 {
            return Ok(!text.is_empty());
        }
        if let Some(end) = reader.buffer().iter().rposition(|byte| *byte == b'\n') {
            text.extend_from_slice(&reader.buffer()[..=end]);
            reader.consume(end + 1);
        }
        let is_open = quotes.as_mut().is_some_and(|quotes| quotes.follow(&text[before..]));
        if !is_open || text.len() > LONGEST {
            return Ok(true);
        }
    }
}

struct Predict<'a> {
    arguments: &'a Arguments,
    saved: &'a SavedModel,
    data: &'a AnyDataset,
    lines: &'a mut SampleLines,
}

impl ModelVisitor for Predict<'_> {
    type Output = Result<()>;

    fn visit<M: Model<Element = f32>>(self, make: fn(Dims, Seed) -> Result<M>) -> Result<()> {
        let mut model = self.saved.load_to_score(make)?;
        let rows = self.arguments.batch_size;
        if self.lines.format.is_whole() {
            let change = &mut |line: &mut String| self.lines.apply(line);
            write_changed_predictions(&mut model, self.data, rows, &mut io::sink(), change)?;
            return self.write_whole();
        }
        let change = &mut |line: &mut String| self.lines.apply(line);
        match self.arguments.output() {
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

impl Predict<'_> {
    /// Writes all samples as a file that is no text.
    fn write_whole(&self) -> Result<()> {
        let bytes = self.lines.whole_file().map_err(|problem| TrainError::Write { problem })?;
        let written = match self.arguments.output() {
            Some(path) => replace_file(path, |writer| writer.write_all(&bytes)),
            None => io::stdout().lock().write_all(&bytes),
        };
        let problem = |error: io::Error| TrainError::Write { problem: error.to_string() };
        Ok(written.map_err(problem)?)
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
