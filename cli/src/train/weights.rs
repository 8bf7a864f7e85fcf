//! Weights of samples: of a column of the data, and of classes.

use super::arguments::{Arguments, name_of};
use super::optimizer;
use crate::Failure;
use crate::input::{TwoLabels, listed};
use crate::models::{ModelKind, Task};
use clap::ValueEnum;
use nnz::data::{AnyDataset, ClassWeights, ColumnValues, WEIGHT};
use nnz::prelude::*;

/// The weights of classes, by their labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ClassWeight {
    /// All classes have the same total weight.
    Balanced,
    /// Labels and their weights; others have 1.
    Given(Vec<(String, f64)>),
}

/// Weights of classes as on the command line.
pub(super) fn class_weight(text: &str) -> Result<ClassWeight, String> {
    if text == "balanced" {
        return Ok(ClassWeight::Balanced);
    }
    let mut given = Vec::new();
    for part in text.split(',') {
        let found = part.rsplit_once('=').and_then(|(label, weight)| {
            Some((label.trim().to_owned(), weight.trim().parse().ok()?))
        });
        match found {
            Some((label, weight)) if weight >= 0.0 && f64::is_finite(weight) => {
                given.push((label, weight));
            }
            _ => {
                return Err(format!(
                    "`{part}`: it is `balanced`, or labels with weights of at least 0, `1=2,0=0.5`"
                ));
            }
        }
    }
    Ok(ClassWeight::Given(given))
}

/// The kind of the model to train: with weights of samples where these are asked for, where a table
/// has a column of them, or where the data has others than 1.
pub(super) fn kind(
    arguments: &Arguments,
    init: Option<ModelKind>,
    data: &AnyDataset,
    has_column: bool,
) -> Result<ModelKind, Failure> {
    let is_weighed = arguments.class_weight.is_some()
        || has_column
        || matches!(data, AnyDataset::Memory(data) if has_weights(data));
    match (init, is_weighed) {
        (Some(kind), false) => Ok(kind),
        (Some(kind), true) if kind.is_weighted() => Ok(kind),
        (Some(_), true) => Err(
            "--init: the model was trained without weights of samples, and goes on without: leave them out"
                .into(),
        ),
        (None, false) => Ok(arguments.model),
        (None, true) => weighted(arguments),
    }
}

/// The kind with weights of samples of what the command line asks for.
fn weighted(arguments: &Arguments) -> Result<ModelKind, Failure> {
    let Some(kind) = arguments.model.weighted() else {
        let all = ModelKind::value_variants().iter();
        let all = all.filter(|kind| kind.base() == **kind && kind.weighted().is_some());
        let names: Vec<String> = all.map(name_of).collect();
        return Err(format!(
            "weights of samples are for --model {}, but the model is {}: leave them out, or choose another --model",
            names.join(", "),
            name_of(&arguments.model)
        )
        .into());
    };
    if !optimizer::FEW.contains(&&arguments.optimizer[..]) {
        return Err(format!(
            "weights of samples are for --optimizer {}, but it is {}: leave them out, or choose another --optimizer",
            optimizer::FEW.join(", "),
            arguments.optimizer
        )
        .into());
    }
    Ok(kind)
}

/// Whether there are weights other than 1.
fn has_weights(data: &Dataset) -> bool {
    match data.column(WEIGHT).map(|column| column.values()) {
        Some(ColumnValues::Dense(weights)) => weights.values().iter().any(|weight| *weight != 1.0),
        _ => false,
    }
}

/// The data with a weight for each sample, 1 where it has none, as models with weights read it.
pub(crate) fn with_any_weights(kind: ModelKind, data: AnyDataset) -> Result<AnyDataset, Failure> {
    match data {
        AnyDataset::Memory(data) if kind.is_weighted() && data.column(WEIGHT).is_none() => {
            let weights = vec![1.0; data.n_rows()];
            Ok(AnyDataset::Memory(data.with_weights(weights)?))
        }
        data => Ok(data),
    }
}

/// The training data with the weights of its classes.
pub(super) fn with_class_weights(
    arguments: &Arguments,
    two_labels: Option<TwoLabels>,
    names: &[String],
    data: AnyDataset,
) -> Result<AnyDataset, Failure> {
    let (Some(asked), AnyDataset::Memory(data)) = (&arguments.class_weight, &data) else {
        return Ok(data);
    };
    let weights = match (asked, arguments.model.task()) {
        (_, Task::Binary | Task::Margin | Task::Classes) if *asked == ClassWeight::Balanced => {
            ClassWeights::Balanced
        }
        (ClassWeight::Given(given), Task::Classes) => {
            let labels = data.classes().map(|classes| classes.labels()).unwrap_or_default();
            ClassWeights::Given(by_class(given, labels, names)?)
        }
        (ClassWeight::Given(given), Task::Binary | Task::Margin) => {
            let statistics = data.label_statistics();
            let few = statistics.first().and_then(|labels| labels.distinct());
            let lowest = few.and_then(|few| few.first()).copied().unwrap_or(0.0);
            let negative = two_labels.map_or(Some(lowest), |labels| labels.negative);
            let positive = two_labels.map_or(1.0, |labels| labels.positive);
            // Where all others are negative, `0` names them.
            let labels = [negative.unwrap_or(0.0), positive];
            ClassWeights::Given(by_class(given, &labels, names)?)
        }
        _ => {
            let name = name_of(&arguments.model);
            return Err(format!(
                "--class-weight is for models of classes, but the model is {name}: leave it out, or choose another --model"
            )
            .into());
        }
    };
    Ok(AnyDataset::Memory(data.clone().with_class_weights(&weights)?))
}

/// The weight of each class, of these labels, which are positions among `names` if there are some.
fn by_class(
    given: &[(String, f64)],
    labels: &[f64],
    names: &[String],
) -> Result<Vec<f64>, Failure> {
    let is_it = |given: &str, label: f64| match names.get(label as usize) {
        Some(name) => name == given,
        None => given.parse() == Ok(label),
    };
    let is_unknown = |(given, _): &&(String, f64)| !labels.iter().any(|label| is_it(given, *label));
    if let Some((label, _)) = given.iter().find(is_unknown) {
        let known = listed(labels, names);
        let message = format!("--class-weight: no class has the label {label}: they are {known}");
        return Err(message.into());
    }
    let weight = |label: &f64| {
        given.iter().find(|(known, _)| is_it(known, *label)).map_or(1.0, |(_, weight)| *weight)
    };
    Ok(labels.iter().map(weight).collect())
}
