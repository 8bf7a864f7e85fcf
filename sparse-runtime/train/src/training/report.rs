//! Reports of training and scoring.

use super::json;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// One epoch of training.
///
/// `Display` is the line that training prints:
/// `epoch 1/10  loss 0.4123  mse 0.8240  evaluation: loss 0.4301 mse 0.8602  3.20 M samples/s`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EpochReport {
    /// The epoch, from zero.
    pub epoch: u64,
    /// One after the last epoch of the run.
    pub epochs: u64,
    /// The mean over samples of the loss just before each was learnt from (progressive loss).
    #[serde(with = "json")]
    pub loss: f64,
    /// The metrics of the outputs just before they were learnt from, by name.
    #[serde(with = "json::metrics")]
    pub metrics: Vec<(Cow<'static, str>, f64)>,
    /// Loss and metrics on the evaluation set, for the parameters after the epoch.
    pub evaluation: Option<ScoreReport>,
    /// The learning rate of the last step.
    #[serde(with = "json")]
    pub learning_rate: f64,
    /// The samples learnt from.
    pub n_rows: u64,
    /// Seconds of training alone, without evaluation.
    #[serde(with = "json")]
    pub seconds: f64,
}

impl EpochReport {
    /// Samples learnt from in a second.
    pub fn samples_per_second(&self) -> f64 {
        self.n_rows as f64 / self.seconds
    }

    /// The value of a metric on the training data.
    pub fn metric(&self, name: &str) -> Option<f64> {
        find(&self.metrics, name)
    }
}

impl fmt::Display for EpochReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (epoch, loss) = (self.epoch + 1, Short(self.loss));
        write!(f, "epoch {epoch}/{}  loss {loss}", self.epochs)?;
        for (name, value) in &self.metrics {
            write!(f, "  {name} {}", Short(*value))?;
        }
        if let Some(evaluation) = &self.evaluation {
            write!(f, "  evaluation: {evaluation}")?;
        }
        write!(f, "  {} samples/s", Short(self.samples_per_second()))
    }
}

/// A run of training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FitReport {
    /// The complete epochs, in order. For a resumed run: the earlier ones in its file, at most the
    /// last [`KEPT_REPORTS`](super::checkpoint::KEPT_REPORTS), and those since.
    pub epochs: Vec<EpochReport>,
    /// True if a callback ended the run before the end of its last epoch.
    pub stopped: bool,
    /// One warning for each parameter whose steps are mostly rounded away, or whose states are not
    /// finite. One batch an epoch is checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl FitReport {
    /// The last epoch.
    pub fn last(&self) -> Option<&EpochReport> {
        self.epochs.last()
    }

    /// The report as JSON. Numbers that are not finite are the words `"NaN"`, `"inf"` and `"-inf"`.
    pub fn to_json(&self) -> String {
        // A report has nothing that JSON cannot write.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The report that [`to_json`](Self::to_json) wrote, with equal bits.
    ///
    /// # Errors
    ///
    /// Text that is not a report, with line and column.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Seconds of training alone, over all epochs.
    pub fn seconds(&self) -> f64 {
        self.epochs.iter().map(|epoch| epoch.seconds).sum()
    }
}

/// A line for each epoch, then the warnings:
///
/// ```
/// use nnz::training::FitReport;
/// let report = FitReport::from_json(
///     r#"{"epochs": [{"epoch": 0, "epochs": 1, "loss": 0.25, "metrics": {"mse": 0.5},
///         "evaluation": null, "learning_rate": 0.1, "n_rows": 1000000, "seconds": 0.5}],
///         "stopped": false}"#,
/// )?;
/// assert_eq!(report.to_string(), "epoch 1/1  loss 0.2500  mse 0.5000  2.00 M samples/s");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl fmt::Display for FitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let epochs = self.epochs.iter().map(ToString::to_string);
        let warnings = self.warnings.iter().map(|warning| format!("warning: {warning}"));
        f.write_str(&epochs.chain(warnings).collect::<Vec<_>>().join("\n"))
    }
}

/// Loss and metrics of a model on data with labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScoreReport {
    /// The mean loss over the samples.
    #[serde(with = "json")]
    pub loss: f64,
    /// The metrics, by name.
    #[serde(with = "json::metrics")]
    pub metrics: Vec<(Cow<'static, str>, f64)>,
    /// The samples.
    pub n_rows: u64,
}

impl ScoreReport {
    /// The value of a metric.
    pub fn metric(&self, name: &str) -> Option<f64> {
        find(&self.metrics, name)
    }
}

/// `loss 0.4301 accuracy 0.8512`.
impl fmt::Display for ScoreReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loss {}", Short(self.loss))?;
        for (name, value) in &self.metrics {
            write!(f, " {name} {}", Short(*value))?;
        }
        Ok(())
    }
}

fn find(metrics: &[(Cow<'static, str>, f64)], name: &str) -> Option<f64> {
    let found = metrics.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value)
}

/// A number for people: four digits, or three and a unit.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, magnitude) = (self.0, self.0.abs());
        let units = [(1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")];
        for (bound, divisor, unit) in units {
            if magnitude >= bound && magnitude.is_finite() {
                let scaled = value / divisor;
                let digits = match scaled.abs() {
                    s if s < 10.0 => 2,
                    s if s < 100.0 => 1,
                    _ => 0,
                };
                return write!(f, "{scaled:.digits$} {unit}");
            }
        }
        match magnitude {
            0.0 => f.write_str("0"),
            m if m < 1e-3 => write!(f, "{value:.3e}"),
            m if m < 1.0 => write!(f, "{value:.4}"),
            m if m < 10.0 => write!(f, "{value:.3}"),
            m if m < 100.0 => write!(f, "{value:.2}"),
            _ => write!(f, "{value:.1}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_one_line() {
        let mut report = EpochReport {
            epoch: 0,
            epochs: 10,
            loss: 0.412_34,
            metrics: vec![("mse".into(), 0.824)],
            evaluation: None,
            learning_rate: 0.1,
            n_rows: 6_400_000,
            seconds: 2.0,
        };
        assert_eq!(report.to_string(), "epoch 1/10  loss 0.4123  mse 0.8240  3.20 M samples/s");
        report.evaluation = Some(ScoreReport {
            loss: 12.3456,
            metrics: vec![("accuracy".into(), 0.851)],
            n_rows: 10,
        });
        report.seconds = 100.0;
        assert_eq!(
            report.to_string(),
            "epoch 1/10  loss 0.4123  mse 0.8240  evaluation: loss 12.35 accuracy 0.8510  64.0 k samples/s"
        );
        assert_eq!((report.metric("mse"), report.metric("auc")), (Some(0.824), None));
    }

    #[test]
    fn reports_come_back_from_json_to_the_bit() {
        let epoch = EpochReport {
            epoch: 3,
            epochs: 10,
            loss: 0.1 + 0.2,
            metrics: vec![("auc".into(), f64::NAN), ("mse".into(), f64::INFINITY)],
            evaluation: None,
            learning_rate: 5e-324,
            n_rows: u64::MAX,
            seconds: 1.0 / 3.0,
        };
        let report = FitReport { epochs: vec![epoch], stopped: true, warnings: Vec::new() };
        let text = report.to_json();
        assert!(text.contains(r#""metrics":{"auc":"NaN","mse":"inf"}"#), "{text}");
        let back = FitReport::from_json(&text).unwrap();
        assert!(back.epochs[0].metrics[0].1.is_nan());
        assert_eq!(back.to_json(), text);
        let epoch = &back.epochs[0];
        assert_eq!((epoch.loss, epoch.learning_rate, epoch.n_rows), (0.1 + 0.2, 5e-324, u64::MAX));
        assert!(FitReport::from_json(&text.replace("NaN", "nothing")).is_err());
    }

    #[test]
    fn numbers_for_people() {
        let cases = [
            (0.0, "0"),
            (1.5e-7, "1.500e-7"),
            (0.001, "0.0010"),
            (-7.65432, "-7.654"),
            (1234.5, "1234.5"),
            (9999.0, "9999.0"),
            (845_000.0, "845 k"),
            (1.6e10, "16.0 G"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
        ];
        for (value, text) in cases {
            assert_eq!(Short(value).to_string(), text);
        }
    }
}
