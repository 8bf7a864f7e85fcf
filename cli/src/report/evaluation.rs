//! The result of an evaluation, as a table and as JSON.

use nnz::metric::{CalibrationBin, NoValue, RankedLists};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::fmt::Write;

/// Loss and metrics of a model on data with labels.
pub(crate) struct Evaluation {
    pub(crate) samples: u64,
    /// The mean over the samples.
    pub(crate) loss: f64,
    /// That of the best constant on the same data, where it is known.
    pub(crate) constant_loss: Option<f64>,
    pub(crate) metrics: Vec<MeasuredMetric>,
    /// The probability from which a sample counts as predicted positive.
    pub(crate) threshold: Option<f64>,
    /// Empty for models without probabilities of two classes.
    pub(crate) calibration: Vec<CalibrationBin>,
    /// What the first items of each user come to, and how many they are.
    pub(crate) ranked: Option<(RankedLists, usize)>,
}

/// A metric by its name.
pub(crate) struct MeasuredMetric {
    pub(crate) name: &'static str,
    /// Why there is none, as the AUC of one class.
    pub(crate) value: Result<f64, NoValue>,
}

impl Evaluation {
    /// As a JSON object on one line.
    pub(crate) fn json(&self) -> String {
        // Numbers and names are nothing that JSON cannot write.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// A line a number, and the calibration table.
    pub(crate) fn table(&self) -> String {
        let mut text =
            format!("{:<10} {}\n{:<10} {:.6}", "samples", self.samples, "loss", self.loss);
        // A string takes whatever is written to it.
        let _ = match self.constant_loss {
            Some(constant) => writeln!(text, "  ({constant:.6} of the best constant)"),
            None => writeln!(text),
        };
        for MeasuredMetric { name, value } in &self.metrics {
            let _ = match value {
                Ok(value) => write!(text, "{name:<10} {value:.6}"),
                Err(why) => write!(text, "{name:<10} none: the data {why}"),
            };
            let of_threshold = matches!(*name, "precision" | "recall" | "f1");
            let _ = match self.threshold.filter(|_| of_threshold) {
                Some(threshold) => writeln!(text, "  (positive from {threshold} on)"),
                None => writeln!(text),
            };
        }
        for (name, value) in self.ranked() {
            let _ = match value {
                Some(value) => writeln!(text, "{name:<12} {value:.6}"),
                None => writeln!(text, "{name:<12} none: no user has a relevant item"),
            };
        }
        if !self.calibration.is_empty() {
            let titles = ["predicted", "mean", "positive", "samples"];
            let [predicted, mean, positive, samples] = titles;
            let _ = writeln!(text, "\n{predicted:<16} {mean:>8} {positive:>8} {samples:>9}");
            for bin in &self.calibration {
                if let (Some(mean), Some(share)) = (bin.mean_prediction(), bin.share_of_positives())
                {
                    let range = format!("{:.3} to {:.3}", bin.low, bin.high);
                    let weight = bin.weight;
                    let _ = writeln!(text, "{range:<16} {mean:>8.4} {share:>8.4} {weight:>9}");
                }
            }
        }
        text
    }

    /// What the first items of each user come to, by names such as `ndcg@10`.
    fn ranked(&self) -> Vec<(String, Option<f64>)> {
        let Some((lists, k)) = &self.ranked else { return Vec::new() };
        vec![
            (format!("precision@{k}"), lists.precision()),
            (format!("recall@{k}"), lists.recall()),
            (format!("ndcg@{k}"), lists.ndcg()),
        ]
    }
}

impl Serialize for Evaluation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("samples", &self.samples)?;
        map.serialize_entry("loss", &self.loss)?;
        map.serialize_entry("constant_loss", &self.constant_loss)?;
        for MeasuredMetric { name, value } in &self.metrics {
            map.serialize_entry(name, &value.as_ref().ok())?;
        }
        for (name, value) in self.ranked() {
            map.serialize_entry(&name, &value)?;
        }
        if let Some(threshold) = self.threshold {
            map.serialize_entry("threshold", &threshold)?;
            let bins: Vec<Bin> = self.calibration.iter().map(Bin::of).collect();
            map.serialize_entry("calibration", &bins)?;
        }
        map.end()
    }
}

/// A row of the calibration table; without samples there is no mean.
#[derive(Serialize)]
struct Bin {
    low: f64,
    high: f64,
    samples: f64,
    mean_prediction: Option<f64>,
    share_of_positives: Option<f64>,
}

impl Bin {
    fn of(bin: &CalibrationBin) -> Self {
        Bin {
            low: bin.low,
            high: bin.high,
            samples: bin.weight,
            mean_prediction: bin.mean_prediction(),
            share_of_positives: bin.share_of_positives(),
        }
    }
}
