//! `nnz inspect`: what a model's file holds.
//!
//! ```text
//! cargo run --release -p nnz-cli -- inspect model.safetensors --top 20 --names vocabulary.txt
//! cargo run --release -p nnz-cli -- inspect clicks.model --data clicks.csv
//! cargo run --release -p nnz-cli -- inspect clicks.model --csv > weights.csv
//! ```

mod shown;

use crate::input::Reading;
use crate::models::notes::{classes, first_feature, label_names};
use crate::models::{ModelKind, ModelVisitor, Task};
use crate::report::{escaped, written};
use crate::{Failure, Program};
use clap::{CommandFactory, FromArgMatches, Parser};
use nnz::core::storage::Storage;
use nnz::data::FeatureNames;
use nnz::model::ParameterRef;
use nnz::prelude::*;
use nnz::training::checkpoint::{CheckpointMetadata, SavedParameter};
use shown::{Shown, ShownParameter, ShownWeight};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Prints what a file that `train --save` wrote holds: for each parameter its storage, shape, norms
/// and largest weights: of features by their numbers in the file that the model was trained on, of
/// classes by their labels. `nnz plan` prints the plan of the model.
///
/// Hashed features have no names in the model's file. One pass over --data finds those that the
/// shown weights belong to: `shop=Rialto` of a table, `namespace^feature` of vw, words; a crossed
/// pair is `a=x*b=y`. Several names of one weight are features that share a column.
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
    /// A file such as the model was trained on, whose features name the hashed weights.
    #[arg(long, value_name = "FILE", conflicts_with = "names")]
    data: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Print all weights that are not zero, a line each, with the titles parameter, row, column,
    /// name and weight.
    #[arg(long, conflicts_with_all = ["json", "top"])]
    csv: bool,
}

pub(crate) fn program() -> Program {
    let run = |matches: &_| run(&Arguments::from_arg_matches(matches)?);
    Program { command: Arguments::command(), run }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let saved = checkpoint::read_metadata(&arguments.model)?;
    let text = arguments.names.as_deref().map(|path| {
        std::fs::read_to_string(path).map_err(|error| format!("`{}`: {error}", path.display()))
    });
    let text = text.transpose()?.unwrap_or_default();
    let names = text.strip_prefix('\u{feff}').unwrap_or(&text).lines().collect();
    let parameters = match ModelKind::of_name(&saved.model) {
        Some(kind) => kind.with(Collect { arguments, saved: &saved, names })?,
        None => saved.parameters.iter().map(ShownParameter::of).collect(),
    };
    let is_known = ModelKind::of_name(&saved.model).is_some();
    let shown = Shown { saved: &saved, is_known, parameters };
    let text = if arguments.json {
        shown.json() + "\n"
    } else if arguments.csv {
        shown.csv()
    } else {
        shown.text()
    };
    written(io::stdout().lock().write_all(text.as_bytes()))
}

/// Loads a model, and collects what is shown of it.
struct Collect<'a> {
    arguments: &'a Arguments,
    saved: &'a CheckpointMetadata,
    /// Of features, from the first one on.
    names: Vec<&'a str>,
}

impl ModelVisitor for Collect<'_> {
    type Output = Result<Vec<ShownParameter>, Failure>;

    fn visit<M: Model<Element = f32>>(
        self,
        make: fn(Dims, Seed) -> Result<M>,
    ) -> Result<Vec<ShownParameter>, Failure> {
        self.saved.check_dims::<M>().map_err(nnz::Error::from)?;
        let mut model = make(self.saved.dims.clone(), Seed(0))?;
        checkpoint::load(&mut model, &self.arguments.model)?;
        let parameters = model.parameters();
        let pairs = || self.saved.parameters.iter().zip(&parameters);
        let mut shown: Vec<ShownParameter> =
            pairs().map(|(saved, parameter)| self.parameter(saved, parameter)).collect();
        if let Some(data) = &self.arguments.data {
            let of_features = shown.iter().filter(|parameter| parameter.is_of_features);
            let weights = of_features.flat_map(|parameter| &parameter.weights);
            let columns: Vec<u64> = weights.map(|weight| weight.row as u64).collect();
            let found = feature_names(self.saved, data, columns)?;
            for parameter in shown.iter_mut().filter(|parameter| parameter.is_of_features) {
                for weight in &mut parameter.weights {
                    weight.names = found.get(weight.row as u64).to_vec();
                }
            }
        }
        Ok(shown)
    }
}

/// The names of hashed features, by one pass over data.
fn feature_names(
    saved: &CheckpointMetadata,
    data: &Path,
    columns: Vec<u64>,
) -> Result<FeatureNames, Failure> {
    let mut reading = Reading::without_flags()?;
    reading.adopt(&saved.notes)?;
    reading.feature_names(data, columns)
}

impl Collect<'_> {
    /// Norms, and the largest weights by the names of their rows: those of features are the
    /// parameters with a row for each feature.
    fn parameter(
        &self,
        saved: &SavedParameter,
        parameter: &ParameterRef<'_, f32>,
    ) -> ShownParameter {
        let (values, size) = (parameter.values(), parameter.shape.row_size().max(1));
        let sum = |of: fn(f64) -> f64| values.iter().map(|&w| of(f64::from(w))).sum::<f64>();
        let is_of_features = saved.storage == Storage::RowSparse
            && self.saved.dims.get("d") == Some(parameter.shape.n_rows());
        let first = if is_of_features { first_feature(&self.saved.notes) } else { 0 };
        // A note that cannot be read is shown as it is.
        let has_classes =
            ModelKind::of_name(&self.saved.model).is_some_and(|kind| kind.task() == Task::Classes);
        let labels = classes(&self.saved.notes).ok().flatten().filter(|_| has_classes);
        let labels = labels.unwrap_or_default();
        let words = label_names(&self.saved.notes).unwrap_or_default();
        let label = |class: usize| match words.get(labels[class] as usize) {
            Some(word) => word.clone(),
            None => labels[class].to_string(),
        };
        let of_classes = |extent: usize| extent > 1 && extent == labels.len();
        let weight = |index: usize| {
            let (row, column) = (index / size, index % size);
            let name = self.names.get(row).filter(|_| is_of_features);
            let place = match (row + first, size) {
                (row, 1) if of_classes(values.len()) && !is_of_features => {
                    format!("class {}", label(row))
                }
                (row, 1) => format!("{row}"),
                (row, size) if of_classes(size) => format!("{row}, class {}", label(column)),
                (row, _) => format!("{row}, {column}"),
            };
            let names = name.iter().map(|name| (**name).to_owned()).collect();
            let (number, value) = (row + first, values[index]);
            ShownWeight { row, number, column, place, names, value }
        };
        let shown = if self.arguments.csv {
            (0..values.len()).filter(|index| values[*index] != 0.0).collect()
        } else {
            largest(values, self.arguments.top)
        };
        ShownParameter {
            weights: shown.into_iter().map(weight).collect(),
            n_values: values.len(),
            n_nonzero: values.iter().filter(|w| **w != 0.0).count(),
            l1: sum(f64::abs),
            l2: sum(|w| w * w).sqrt(),
            mean: sum(|w| w) / values.len().max(1) as f64,
            is_of_features,
            ..ShownParameter::of(saved)
        }
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

/// A parameter by its storage, shape and element type.
fn heading(parameter: &SavedParameter) -> String {
    let SavedParameter { name, storage, element, shape, .. } = parameter;
    escaped(&format!("{name}: {storage} {shape} {element}"))
}
