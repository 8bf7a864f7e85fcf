//! Metrics: the value after each of several batches.

use crate::golden::case::{Tensor, cases, id, numbers};
use crate::golden::compare::Tolerance;
use crate::golden::tally::Tally;
use nnz::kernels::Array;
use nnz::metric::{
    Accuracy, BatchMean, F1, LabelsView, LogLoss, Loss, Mae, Matthews, Metric, Mse, Pearson,
    Perplexity, Rmse, TopKAccuracy,
};
use serde_json::Value;

#[test]
fn metrics() {
    let Some(cases) = cases("metrics") else { return };
    let mut tally = Tally::new("metrics");
    for case in &cases {
        tally.add(id(case), run_case(case).into());
    }
    tally.finish();
}

/// A metric by the reference's name, and whether its labels are class ids.
///
/// The reference averages errors over batches, whatever their size, as `BatchMean` does;
/// `average: micro` is our plain metric, over everything seen. `ce` and `nll_loss` are two of its
/// names for one formula.
fn metric(name: &str, attributes: &Value) -> Result<(Box<dyn Metric>, bool), String> {
    let known = match name {
        "top_k_accuracy" => &["top_k"][..],
        "perplexity" => &["ignore_label"],
        "f1" | "mcc" | "pearsonr" => &["average"],
        _ => &[],
    };
    let empty = serde_json::Map::new();
    let mut given = attributes.as_object().unwrap_or(&empty).keys();
    if let Some(attribute) = given.find(|attribute| !known.contains(&attribute.as_str())) {
        return Err(format!("unknown attribute `{attribute}` of `{name}`"));
    }
    let whole = match attributes["average"].as_str() {
        None | Some("macro") => false,
        Some("micro") => true,
        Some(average) => return Err(format!("unknown average `{average}`")),
    };
    fn averaged<M: Metric>(metric: M, whole: bool) -> Box<dyn Metric> {
        if whole { Box::new(metric) } else { Box::new(BatchMean(metric)) }
    }
    Ok(match name {
        "mse" => (averaged(Mse, whole), false),
        "mae" => (averaged(Mae, whole), false),
        "rmse" => (averaged(Rmse, whole), false),
        "pearsonr" => (averaged(Pearson, whole), false),
        "f1" => (averaged(F1, whole), true),
        "mcc" => (averaged(Matthews, whole), true),
        "acc" => (Box::new(Accuracy), true),
        "ce" | "nll_loss" => (Box::new(LogLoss), true),
        "top_k_accuracy" => {
            let k = attributes["top_k"].as_u64().ok_or("no `top_k`")? as usize;
            (Box::new(TopKAccuracy { k }), true)
        }
        "perplexity" => {
            let ignore_label = match &attributes["ignore_label"] {
                Value::Null => None,
                label => Some(label.as_i64().ok_or("`ignore_label` is no class id")?),
            };
            (Box::new(Perplexity { ignore_label }), true)
        }
        "loss" => (Box::new(Loss), false),
        _ => return Err(format!("unknown metric `{name}`")),
    })
}

fn run_case(case: &Value) -> Result<(), String> {
    let (metric, classes) = metric(case["metric"].as_str().ok_or("no metric")?, &case["attrs"])?;
    let mut seen = metric.start();
    let mut values = Vec::new();
    for update in case["updates"].as_array().ok_or("no updates")? {
        let outputs = numbers_of(&Tensor::read(&update["pred"])?)?;
        let labels = Tensor::read(&update["label"])?;
        let result = if classes {
            let ids = labels.ids()?;
            seen.update(outputs.view(), LabelsView::Classes((&ids).into()))
        } else {
            let labels = numbers_of(&labels)?;
            seen.update(outputs.view(), LabelsView::Real(labels.view()))
        };
        result.map_err(|error| error.to_string())?;
        values.push(seen.value().unwrap_or(f64::NAN));
    }
    let expected = numbers(&case["values"]).ok_or("no values")?;
    Tolerance::of_case(id(case), "metric").compare("value after each batch", values, &expected)
}

/// A dense tensor in the type that metrics are computed in.
fn numbers_of(tensor: &Tensor) -> Result<nnz::formats::Dense<f64>, String> {
    match tensor.array()? {
        Array::Dense(dense) => Ok(dense.cast_elements()),
        other => Err(format!("`{}` is {}", tensor.name, other.storage())),
    }
}
