//! What is shown of a model, as text, as JSON and as CSV.

use super::heading;
use crate::report::escaped;
use nnz::training::checkpoint::{CheckpointMetadata, SavedParameter};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// A model's file, and its parameters.
pub(super) struct Shown<'a> {
    pub(super) saved: &'a CheckpointMetadata,
    /// Whether it is a model of `train`: of others there are no weights.
    pub(super) is_known: bool,
    pub(super) parameters: Vec<ShownParameter>,
}

/// A parameter, and some of its weights.
pub(super) struct ShownParameter {
    pub(super) name: String,
    pub(super) heading: String,
    pub(super) weights: Vec<ShownWeight>,
    pub(super) n_values: usize,
    pub(super) n_nonzero: usize,
    pub(super) l1: f64,
    pub(super) l2: f64,
    pub(super) mean: f64,
    /// Whether it has a row for each feature.
    pub(super) is_of_features: bool,
}

/// A weight.
pub(super) struct ShownWeight {
    pub(super) row: usize,
    /// The row as the file of the data counts.
    pub(super) number: usize,
    pub(super) column: usize,
    /// Row and column in words.
    pub(super) place: String,
    /// Of its feature; several of features that share a column.
    pub(super) names: Vec<String>,
    pub(super) value: f32,
}

impl ShownParameter {
    /// A parameter of which no weights are known.
    pub(super) fn of(saved: &SavedParameter) -> Self {
        ShownParameter {
            name: saved.name.clone(),
            heading: heading(saved),
            weights: Vec::new(),
            n_values: 0,
            n_nonzero: 0,
            l1: 0.0,
            l2: 0.0,
            mean: 0.0,
            is_of_features: false,
        }
    }
}

impl Shown<'_> {
    pub(super) fn text(&self) -> String {
        let saved = self.saved;
        let (model, dims) = (escaped(&saved.model), escaped(&saved.dims.to_string()));
        let mut text = String::new();
        // A string takes whatever is written to it.
        let _ = writeln!(text, "{model} ({dims}), graph {:016x}", saved.fingerprint);
        for (name, note) in &saved.notes {
            let _ = writeln!(text, "{}: {}", escaped(name), escaped(note));
        }
        if !self.is_known {
            text += "not a model of `train`: its graph and weights are not shown\n";
        }
        for parameter in &self.parameters {
            let _ = writeln!(text, "{}", parameter.heading);
            if self.is_known {
                let ShownParameter { n_nonzero, n_values, l1, l2, mean, .. } = parameter;
                let _ = writeln!(
                    text,
                    "  {n_nonzero} of {n_values} not zero ({:.2} %)  |w|₁ {l1:.6}  |w|₂ {l2:.6}  mean {mean:.6}",
                    100.0 * *n_nonzero as f64 / (*n_values).max(1) as f64,
                );
            }
            for weight in &parameter.weights {
                let names = escaped(&weight.names.join(", "));
                let _ = writeln!(text, "  [{}] {names}\t{:+.6}", weight.place, weight.value);
            }
        }
        text
    }

    pub(super) fn json(&self) -> String {
        let notes = self.saved.notes.iter();
        let notes = notes.map(|(name, note)| (name.clone(), note.clone().into()));
        let parameters: Vec<Value> = self.parameters.iter().map(ShownParameter::json).collect();
        let value = json!({
            "model": self.saved.model,
            "dims": self.saved.dims.iter().map(|(name, extent)| (name.to_owned(), extent.into()))
                .collect::<Map<String, Value>>(),
            "graph": format!("{:016x}", self.saved.fingerprint),
            "notes": notes.collect::<Map<String, Value>>(),
            "parameters": parameters,
        });
        value.to_string()
    }

    pub(super) fn csv(&self) -> String {
        let mut text = "parameter,row,column,name,weight\n".to_owned();
        for parameter in &self.parameters {
            for ShownWeight { number, column, names, value, .. } in &parameter.weights {
                let name = names.join("; ").replace('"', "\"\"");
                let name = if name.contains([',', '"', '\n', '\r']) {
                    format!("\"{name}\"")
                } else {
                    name
                };
                // A string takes whatever is written to it.
                let _ = writeln!(text, "{},{number},{column},{name},{value}", parameter.name);
            }
        }
        text
    }
}

impl ShownParameter {
    fn json(&self) -> Value {
        let weight = |weight: &ShownWeight| {
            let ShownWeight { number, column, names, value, .. } = weight;
            // The shortest digits of a 32-bit number, not those of its double.
            let value: f64 = value.to_string().parse().unwrap_or(f64::NAN);
            json!({ "row": number, "column": column, "names": names, "weight": value })
        };
        json!({
            "name": self.name,
            "values": self.n_values,
            "nonzero": self.n_nonzero,
            "l1": self.l1,
            "l2": self.l2,
            "mean": self.mean,
            "weights": self.weights.iter().map(weight).collect::<Vec<_>>(),
        })
    }
}
