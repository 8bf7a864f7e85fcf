//! The line of an epoch, as text and as JSON.

use serde::Serialize;
use std::fmt::Write as _;

/// One epoch, as `--json` prints it. This contract stays; later models add fields.
/// `objective` and `train_loss` are there with `--objective`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct EpochLine {
    pub(crate) epoch: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) objective: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) train_loss: Option<f64>,
    pub(crate) progressive_loss: f64,
    pub(crate) seconds: f64,
    pub(crate) samples_per_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) test_loss: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) test_accuracy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) test_auc: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) test_rmse: Option<f64>,
}

impl EpochLine {
    /// The first of its losses and metrics that is no finite number.
    pub(crate) fn not_finite(&self) -> Option<(&'static str, f64)> {
        let numbers = [
            ("the objective", self.objective),
            ("the training loss", self.train_loss),
            ("the progressive loss", Some(self.progressive_loss)),
            ("the loss on the test data", self.test_loss),
            ("the accuracy on the test data", self.test_accuracy),
            ("the AUC on the test data", self.test_auc),
            ("the RMSE on the test data", self.test_rmse),
        ];
        let mut known = numbers.into_iter().filter_map(|(name, number)| Some((name, number?)));
        known.find(|(_, number)| !number.is_finite())
    }

    /// As a JSON object.
    pub(crate) fn json(&self) -> String {
        // Numbers and names are nothing that JSON cannot write.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// As text; `epochs` are made in all.
    pub(crate) fn text(&self, epochs: u64) -> String {
        let mut text = format!("epoch {}/{}", self.epoch, epochs);
        let _ = match (self.objective, self.train_loss) {
            (Some(objective), Some(loss)) => {
                write!(text, "  objective {objective:.6}  loss {loss:.6}")
            }
            _ => write!(text, "  progressive loss {:.6}", self.progressive_loss),
        };
        let tested = [
            ("loss", self.test_loss),
            ("accuracy", self.test_accuracy),
            ("auc", self.test_auc),
            ("rmse", self.test_rmse),
        ];
        for (name, value) in tested {
            if let Some(value) = value {
                let _ = write!(text, "  test {name} {value:.5}");
            }
        }
        let (seconds, rate) = (self.seconds, self.samples_per_s / 1e6);
        let _ = write!(text, "  {seconds:.2} s  {rate:.2} M samples/s");
        text
    }
}
