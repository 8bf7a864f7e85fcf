//! What a file was read as, in one line; and the loss of the best constant, which a model should be better than.

use crate::data::{Base, Format, Known, Reading};
use crate::models::ModelKind;
use nnz::data::{AnyDataset, ColumnValues, Dataset};
use nnz::formats::Ids;
use nnz::model::InputRole;
use nnz::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// `titanic.txt: words, by its ending (guessed); 891 samples; 2^20 columns; labels 0, 1`. What is known of the training data is `known` where the
/// file is another.
pub(crate) fn summary(
    reading: &Reading,
    path: &Path,
    data: &AnyDataset,
    known: Option<&Known>,
    n_features: Option<usize>,
) -> String {
    let format = reading.format_of(path);
    let reason = match reading.format {
        Some(_) => "by --format".to_owned(),
        None => format!("{} (guessed)", Format::reason(path)),
    };
    let mut parts = vec![format!("{}: {}, {reason}", path.display(), format.name())];
    parts.push(match data {
        AnyDataset::Memory(data) => counted(data.n_rows(), "sample"),
        AnyDataset::Stream(data) => match data.n_rows() {
            Some(n_rows) => format!("{}, streamed", counted(n_rows, "sample")),
            None => "samples streamed".to_owned(),
        },
    });
    let of_training = known.is_some();
    match data {
        AnyDataset::Memory(data) if format == Format::Ratings => {
            let n_ids = |column| data.id_map(column).map_or(0, |ids| ids.len());
            if !of_training {
                parts.push(counted(n_ids("user"), "user"));
                parts.push(counted(n_ids("item"), "item"));
            }
        }
        _ if format.is_hashed() => parts.push(format!("2^{} columns", reading.hash_bits())),
        _ => {
            let mut columns = counted(data.n_features(), "column");
            if n_features.is_none() && !of_training {
                columns += ", as many as occur (guessed)";
            }
            parts.push(columns);
        }
    }
    let base = match data {
        AnyDataset::Memory(data) => data.report().and_then(|report| report.index_base),
        AnyDataset::Stream(data) => data.report().index_base,
    };
    if let Some(base) = base {
        let first = if base == IndexBase::Zero { "zero" } else { "one" };
        let guessed = match reading.index_base {
            Base::Detect if of_training => ", as in the training data",
            Base::Detect => " (guessed)",
            Base::Zero | Base::One => "",
        };
        parts.push(format!("counted from {first}{guessed}"));
    }
    if let (AnyDataset::Memory(data), false) = (data, data.classes().is_some()) {
        parts.extend(labels(data));
    }
    if let Some(classes) = data.classes() {
        parts.push(format!("classes {}", listed(classes.labels().iter().copied())));
    }
    for scale in &reading.scales {
        parts.push(format!(
            "`{}` less {:.4} and divided by {:.4}",
            scale.column, scale.mean, scale.deviation
        ));
    }
    parts.join("; ")
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// What each label's values are: all of them if they are few, else from where to where.
fn labels(data: &Dataset) -> Vec<String> {
    let labels = data.columns().iter().filter(|column| column.role() == InputRole::Label);
    let mut said = Vec::new();
    for column in labels {
        let ColumnValues::Dense(values) = column.values() else { continue };
        let name = match column.name() {
            None | Some("y") => "labels".to_owned(),
            Some(name) => format!("labels `{name}`"),
        };
        said.push(format!("{name} {}", listed(values.values().iter().map(|&y| f64::from(y)))));
    }
    said
}

/// `0, 1`, or `-3 to 12.5` of many values.
fn listed(values: impl Iterator<Item = f64>) -> String {
    const SHOWN: usize = 10;
    let mut distinct = BTreeSet::new();
    let (mut lowest, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        (lowest, highest) = (lowest.min(value), highest.max(value));
        if distinct.len() <= SHOWN {
            distinct.insert(Ordered(value + 0.0));
        }
    }
    if distinct.len() > SHOWN {
        return format!("{lowest} to {highest}");
    }
    let shown: Vec<String> = distinct.iter().map(|value| value.0.to_string()).collect();
    shown.join(", ")
}

/// A finite number by its size.
#[derive(PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The lowest and the highest label of the data in memory, by its first label.
pub(crate) fn range_of_labels(data: &AnyDataset) -> Option<(f64, f64)> {
    let AnyDataset::Memory(data) = data else { return None };
    let numbers = numbers(data).into_iter().next()?;
    let all = numbers.iter().map(|&y| f64::from(y));
    Some((all.clone().fold(f64::INFINITY, f64::min), all.fold(f64::NEG_INFINITY, f64::max)))
}

/// The labels that are numbers.
fn numbers(data: &Dataset) -> Vec<&[f32]> {
    let labels = data.columns().iter().filter(|column| column.role() == InputRole::Label);
    let numbers = labels.filter_map(|column| match column.values() {
        ColumnValues::Dense(values) => Some(values.values()),
        _ => None,
    });
    numbers.collect()
}

/// The mean loss over the training data of the best prediction that is the same for all samples. Unknown of a stream.
pub(crate) fn constant_loss(kind: ModelKind, data: &AnyDataset) -> Option<f64> {
    let AnyDataset::Memory(data) = data else { return None };
    let labels = numbers(data);
    match kind {
        ModelKind::Linear | ModelKind::MatrixFactorization => half_variance(labels.first()?),
        ModelKind::Logistic | ModelKind::FactorizationMachine | ModelKind::WideDeep => {
            binary_entropy(labels.first()?)
        }
        ModelKind::Poisson => {
            let mean = mean_of(labels.first()?, |y| y)?;
            // The loss is exp(s) - y · s, and s = ln(mean) is the best.
            Some(if mean > 0.0 { mean - mean * mean.ln() } else { 0.0 })
        }
        ModelKind::MultiTask => {
            Some(half_variance(labels.first()?)? + binary_entropy(labels.get(1)?)?)
        }
        ModelKind::Softmax => {
            let Some(ColumnValues::Ids(Ids::U32(ids))) = data.labels() else { return None };
            let mut counts = BTreeMap::new();
            ids.values().iter().for_each(|id| *counts.entry(id).or_insert(0.0) += 1.0);
            let n = ids.values().len() as f64;
            (n > 0.0).then(|| counts.values().map(|count| -count / n * f64::ln(count / n)).sum())
        }
    }
}

fn mean_of(labels: &[f32], of: impl Fn(f64) -> f64) -> Option<f64> {
    let sum: f64 = labels.iter().map(|&y| of(f64::from(y))).sum();
    (!labels.is_empty()).then(|| sum / labels.len() as f64)
}

fn half_variance(labels: &[f32]) -> Option<f64> {
    let mean = mean_of(labels, |y| y)?;
    Some(mean_of(labels, |y| (y - mean).powi(2))? / 2.0)
}

fn binary_entropy(labels: &[f32]) -> Option<f64> {
    let rate = mean_of(labels, |y| y.max(0.0))?;
    let part = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    Some(part(rate) + part(1.0 - rate))
}
