//! The labels of a model of two classes: which of them is the positive one.

use super::{AnyDataset, DataFiles};
use crate::Failure;

/// The two labels, where they are not those that a loss reads as they are: -1 and 1, or from 0 to
/// 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TwoLabels {
    pub(crate) positive: f64,
    /// Any other label, if there is none.
    pub(crate) negative: Option<f64>,
}

impl TwoLabels {
    /// Of the training data: `asked` for, or the larger of two that a loss would not read. None
    /// where labels are read as they are.
    pub(crate) fn find(
        asked: Option<&str>,
        data: &AnyDataset,
        files: &DataFiles,
        names: &[String],
    ) -> Result<Option<Self>, Failure> {
        let number = |asked: &str| match names.iter().position(|name| name == asked) {
            Some(position) => Ok(position as f64),
            None => asked.parse::<f64>().ok().filter(|_| names.is_empty()).ok_or_else(|| {
                let known = names.join(", ");
                let known = if names.is_empty() { "numbers".to_owned() } else { known };
                format!(
                    "--positive {asked}: no sample of `{files}` has that label: they are {known}"
                )
            }),
        };
        let asked = asked.map(number).transpose()?;
        let listed = |labels: &[f64]| listed(labels, names);
        let AnyDataset::Memory(data) = data else {
            return match asked {
                Some(_) => Err("--positive is for data in memory: leave --stream out, or write the labels as 0 and 1".into()),
                None => Ok(None),
            };
        };
        let statistics = data.label_statistics();
        let Some(few) = statistics.first().and_then(|labels| labels.distinct()) else {
            return match asked {
                Some(positive) => Ok(Some(TwoLabels { positive, negative: None })),
                None => Ok(None),
            };
        };
        let is_read = few == [-1.0, 1.0] || few.iter().all(|label| (0.0..=1.0).contains(label));
        match (asked, few) {
            (Some(positive), _) if !few.contains(&positive) => Err(format!(
                "--positive {}: no sample of `{files}` has that label: they are {}",
                listed(&[positive]),
                listed(few)
            )
            .into()),
            (Some(positive), &[low, high]) => {
                let negative = if positive == low { high } else { low };
                Ok(Some(TwoLabels { positive, negative: Some(negative) }))
            }
            (Some(positive), _) => Ok(Some(TwoLabels { positive, negative: None })),
            // The loss says what is wrong with -1 beside 0 and 1.
            (None, [-1.0, 0.0, 1.0]) => Ok(None),
            (None, _) if is_read || few == [-1.0] => Ok(None),
            (None, &[negative, positive]) => {
                Ok(Some(TwoLabels { positive, negative: Some(negative) }))
            }
            (None, _) => Err(format!(
                "`{files}` has the labels {}, and the model has two classes: --positive {} makes one of them the positive class, --model softmax takes them all",
                listed(few),
                listed(&few[few.len() - 1..])
            )
            .into()),
        }
    }

    /// The data with 1 and 0 as labels.
    pub(crate) fn apply(self, data: AnyDataset) -> Result<AnyDataset, Failure> {
        match data {
            AnyDataset::Memory(data) => {
                Ok(AnyDataset::Memory(data.into_binary(self.positive, self.negative)?))
            }
            // Its labels would be taken for others without a word.
            AnyDataset::Stream(_) => Err(format!(
                "the model's file says that {}, which holds for data in memory: leave --stream out",
                self.told(&[])
            )
            .into()),
        }
    }
}

impl TwoLabels {
    /// `2 is positive, 1 is negative`; the labels are positions among `names`, if there are some.
    pub(crate) fn told(&self, names: &[String]) -> String {
        let positive = listed(&[self.positive], names);
        match self.negative {
            Some(negative) => {
                format!("{positive} is positive, {} is negative", listed(&[negative], names))
            }
            None => format!("{positive} is positive, all others are negative"),
        }
    }
}

/// Labels by their words, if they have some.
pub(crate) fn listed(labels: &[f64], names: &[String]) -> String {
    let name = |label: &f64| match names.get(*label as usize) {
        Some(name) => name.clone(),
        None => label.to_string(),
    };
    labels.iter().map(name).collect::<Vec<_>>().join(", ")
}
