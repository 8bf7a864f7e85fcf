//! `nnz inspect`: what a model's file holds.
//!
//! ```text
//! cargo run --release -p nnz-cli -- inspect model.safetensors --top 20 --names vocabulary.txt
//! ```

use crate::Program;
use crate::models::notes::{classes, first_feature};
use crate::models::{ModelKind, ModelVisitor};
use crate::report::escaped;
use clap::{CommandFactory, FromArgMatches, Parser};
use nnz::core::storage::Storage;
use nnz::model::ParameterRef;
use nnz::prelude::*;
use nnz::training::checkpoint::{CheckpointMetadata, SavedParameter};
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Prints what a file that `train --save` wrote holds: for each parameter its storage, shape, norms
/// and largest weights: of features by their numbers in the file that the model was trained on, of
/// classes by their labels. `nnz plan` prints the plan of the model.
#[derive(Debug, Parser)]
#[command(name = "inspect")]
struct Arguments {
    /// The model's file.
    model: PathBuf,
    /// How many of the largest weights are shown of each parameter.
    #[arg(long, value_name = "WEIGHTS", default_value_t = 10)]
    top: usize,
    /// What the features are called, a line each, from the first one on.
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
}

pub(crate) fn program() -> Program {
    Program {
        command: Arguments::command(),
        run: |matches| {
            let arguments = Arguments::from_arg_matches(matches)?;
            match run(&arguments, &mut io::stdout().lock()) {
                // Whoever reads has seen enough.
                Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                result => Ok(result?),
            }
        },
    }
}

/// What went wrong.
#[derive(Debug)]
enum Failure {
    Input(nnz::Error),
    Names(PathBuf, io::Error),
    Output(io::Error),
}

impl std::error::Error for Failure {}

impl From<nnz::Error> for Failure {
    fn from(error: nnz::Error) -> Self {
        Failure::Input(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Input(error) => error.fmt(f),
            Failure::Names(path, error) => write!(f, "`{}`: {error}", path.display()),
            Failure::Output(error) => write!(f, "the standard output cannot be written: {error}"),
        }
    }
}

fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let saved = checkpoint::read_metadata(&arguments.model)?;
    let text = arguments.names.as_deref().map(|path| {
        std::fs::read_to_string(path).map_err(|error| Failure::Names(path.to_owned(), error))
    });
    let text = text.transpose()?;
    let text = text.as_deref().map(|text| text.strip_prefix('\u{feff}').unwrap_or(text));
    let names: Vec<&str> = text.iter().flat_map(|text| text.lines()).collect();
    let (model, dims) = (escaped(&saved.model), escaped(&saved.dims.to_string()));
    writeln!(out, "{model} ({dims}), graph {:016x}", saved.fingerprint)?;
    for (name, note) in &saved.notes {
        writeln!(out, "{}: {}", escaped(name), escaped(note))?;
    }
    let Some(kind) = ModelKind::of_name(&saved.model) else {
        writeln!(out, "not a model of `train`: its graph and weights are not shown")?;
        for parameter in &saved.parameters {
            writeln!(out, "{}", heading(parameter))?;
        }
        return Ok(());
    };
    let (path, top) = (&arguments.model, arguments.top);
    kind.with(Show { path, saved: &saved, names: &names, top, out })
}

fn heading(parameter: &SavedParameter) -> String {
    let SavedParameter { name, storage, element, shape, .. } = parameter;
    escaped(&format!("{name}: {storage} {shape} {element}"))
}

struct Show<'a> {
    path: &'a Path,
    saved: &'a CheckpointMetadata,
    names: &'a [&'a str],
    top: usize,
    out: &'a mut dyn Write,
}

impl ModelVisitor for Show<'_> {
    type Output = Result<(), Failure>;

    fn visit<M: Model<Element = f32>>(
        mut self,
        make: fn(Dims, Seed) -> Result<M>,
    ) -> Result<(), Failure> {
        self.saved.check_dims::<M>().map_err(nnz::Error::from)?;
        let mut model = make(self.saved.dims.clone(), Seed(0))?;
        checkpoint::load(&mut model, self.path)?;
        for (saved, parameter) in self.saved.parameters.iter().zip(model.parameters()) {
            writeln!(self.out, "{}", heading(saved))?;
            self.show(parameter, saved)?;
        }
        Ok(())
    }
}

impl Show<'_> {
    /// Norms, and the largest weights by the names of their rows: those of features are the
    /// parameters with a row for each feature.
    fn show(&mut self, parameter: ParameterRef<'_, f32>, saved: &SavedParameter) -> io::Result<()> {
        let (values, size) = (parameter.values(), parameter.shape.row_size().max(1));
        let sum = |of: fn(f64) -> f64| values.iter().map(|&w| of(f64::from(w))).sum::<f64>();
        let n_nonzero = values.iter().filter(|w| **w != 0.0).count();
        writeln!(
            self.out,
            "  {n_nonzero} of {} not zero ({:.2} %)  |w|₁ {:.6}  |w|₂ {:.6}  mean {:.6}",
            values.len(),
            100.0 * n_nonzero as f64 / values.len().max(1) as f64,
            sum(f64::abs),
            sum(|w| w * w).sqrt(),
            sum(|w| w) / values.len().max(1) as f64,
        )?;
        let of_features = saved.storage == Storage::RowSparse
            && self.saved.dims.get("d") == Some(parameter.shape.n_rows());
        let first = if of_features { first_feature(&self.saved.notes) } else { 0 };
        // A note that cannot be read is shown as it is, above.
        let labels = classes(&self.saved.notes).ok().flatten().unwrap_or_default();
        let of_classes = |extent: usize| extent > 1 && extent == labels.len();
        for index in largest(values, self.top) {
            let (row, column) = (index / size, index % size);
            let name = self.names.get(row).filter(|_| of_features).unwrap_or(&"");
            let place = match (row + first, size) {
                (row, 1) if of_classes(values.len()) && !of_features => {
                    format!("class {}", labels[row])
                }
                (row, 1) => format!("{row}"),
                (row, size) if of_classes(size) => format!("{row}, class {}", labels[column]),
                (row, _) => format!("{row}, {column}"),
            };
            writeln!(self.out, "  [{place}] {}\t{:+.6}", escaped(name), values[index])?;
        }
        Ok(())
    }
}

/// The positions of the weights of the largest size, largest first, of equal ones the first; zeros
/// are none.
fn largest(values: &[f32], count: usize) -> Vec<usize> {
    let size = |index: &usize| values[*index].abs();
    let order = |a: &usize, b: &usize| size(b).total_cmp(&size(a)).then(a.cmp(b));
    let mut found: Vec<usize> = (0..values.len()).filter(|&index| values[index] != 0.0).collect();
    if count < found.len() {
        found.select_nth_unstable_by(count, order);
        found.truncate(count);
    }
    found.sort_unstable_by(order);
    found
}
