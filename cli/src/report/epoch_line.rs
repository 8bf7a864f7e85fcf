//! The line of an epoch, as JSON, and its numbers for the table.

use serde::Serialize;

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
    /// Whether it is the best epoch so far on the test data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) best: Option<bool>,
    /// The first epoch after 1, 2, 4, … batches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) progress: Vec<ProgressPoint>,
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

    /// The titles of the table: with an objective, and tested by these metrics.
    pub(crate) fn titles(has_objective: bool, tested: &[&str]) -> Vec<[&'static str; 2]> {
        let mut titles = vec![["mean", "loss"]];
        titles.extend(if has_objective {
            &[["", "objective"], ["training", "loss"]][..]
        } else {
            &[["since", "last"]]
        });
        for (name, title, _) in Self::default().tested() {
            if tested.contains(&name) {
                titles.push(["test", title]);
            }
        }
        titles
    }

    /// What is measured, in the order of the titles.
    pub(crate) fn measured(&self, since_last: Option<f64>, tested: &[&str]) -> Vec<Option<f64>> {
        let mut measured = vec![Some(self.progressive_loss)];
        match (self.objective, self.train_loss) {
            (Some(objective), loss) => measured.extend([Some(objective), loss]),
            _ => measured.push(since_last),
        }
        let known = self.tested().into_iter().filter(|(name, ..)| tested.contains(name));
        measured.extend(known.map(|(.., value)| value));
        measured
    }

    /// What is measured on the test data: the name, the title and the value.
    fn tested(&self) -> [(&'static str, &'static str, Option<f64>); 4] {
        [
            ("loss", "loss", self.test_loss),
            ("accuracy", "accuracy", self.test_accuracy),
            ("auc", "auc", self.test_auc),
            ("rmse", "rmse", self.test_rmse),
        ]
    }
}

/// The progressive loss within an epoch.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ProgressPoint {
    /// The samples of the epoch so far.
    pub(crate) samples: u64,
    /// The mean loss over them, each before it was learnt from.
    pub(crate) progressive_loss: f64,
    /// The mean loss over the samples since the point before.
    pub(crate) since_last: f64,
    /// Since training began.
    pub(crate) seconds: f64,
}
