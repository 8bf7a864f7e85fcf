//! What a model's file holds.
//!
//! ```text
//! cargo run --release --example inspect -- model.safetensors --top 20 --names vocabulary.txt
//! ```

#[path = "../command_line/models.rs"]
mod models;

use clap::Parser;
use models::{ModelKind, ModelVisitor};
use nnz::model::ParameterRef;
use nnz::prelude::*;
use nnz::training::checkpoint::{CheckpointMetadata, SavedParameter};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Prints what a file that `train --save` wrote holds: the model's plan, and for each parameter its storage, shape, norms and
/// largest weights.
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

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("inspect: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let saved = checkpoint::read_metadata(&arguments.model)?;
    let text = arguments.names.as_deref().map(std::fs::read_to_string).transpose()?;
    let names: Vec<&str> = text.iter().flat_map(|text| text.lines()).collect();
    println!("{} ({}), graph {:016x}", saved.model, saved.dims, saved.fingerprint);
    let Some(kind) = ModelKind::of_name(&saved.model) else {
        println!("not a model of `train`: its graph and weights are not shown");
        saved.parameters.iter().for_each(|parameter| println!("{}", heading(parameter)));
        return Ok(());
    };
    kind.with(Show { path: &arguments.model, saved: &saved, names: &names, top: arguments.top })?;
    Ok(())
}

fn heading(parameter: &SavedParameter) -> String {
    let SavedParameter { name, storage, element, shape, .. } = parameter;
    format!("{name}: {storage} {shape} {element}")
}

struct Show<'a> {
    path: &'a Path,
    saved: &'a CheckpointMetadata,
    names: &'a [&'a str],
    top: usize,
}

impl ModelVisitor for Show<'_> {
    type Output = Result<()>;

    fn visit<M: Model<Element = f32>>(self, make: fn(Dims, Seed) -> Result<M>) -> Result<()> {
        let mut model = make(self.saved.dims.clone(), Seed(0))?;
        checkpoint::load(&mut model, self.path)?;
        println!("{}", model.plan());
        for (saved, parameter) in self.saved.parameters.iter().zip(model.parameters()) {
            println!("{}", heading(saved));
            self.show(parameter);
        }
        Ok(())
    }
}

impl Show<'_> {
    /// Norms, and the largest weights by the names of their rows: those of features are the parameters with a row for each
    /// feature.
    fn show(&self, parameter: ParameterRef<'_, f32>) {
        let (values, size) = (parameter.values(), parameter.shape.row_size().max(1));
        let sum = |of: fn(f64) -> f64| values.iter().map(|&w| of(f64::from(w))).sum::<f64>();
        let n_nonzero = values.iter().filter(|w| **w != 0.0).count();
        println!(
            "  {n_nonzero} of {} not zero ({:.2} %)  |w|₁ {:.6}  |w|₂ {:.6}  mean {:.6}",
            values.len(),
            100.0 * n_nonzero as f64 / values.len().max(1) as f64,
            sum(f64::abs),
            sum(|w| w * w).sqrt(),
            sum(|w| w) / values.len().max(1) as f64,
        );
        let of_features = self.saved.dims.get("d") == Some(parameter.shape.n_rows());
        for index in largest(values, self.top) {
            let (row, column) = (index / size, index % size);
            let name = self.names.get(row).filter(|_| of_features).unwrap_or(&"");
            let place = if size == 1 { format!("{row}") } else { format!("{row}, {column}") };
            println!("  [{place}] {name}\t{:+.6}", values[index]);
        }
    }
}

/// The positions of the weights of the largest size, largest first, of equal ones the first; zeros are none.
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
