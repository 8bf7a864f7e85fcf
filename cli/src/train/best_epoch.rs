//! The best epoch of a run, and the last line that says so.

use super::arguments::{Arguments, Watched};
use nnz::training::EpochReport;
use std::cell::Cell;

/// An epoch and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tried {
    /// From one.
    epoch: u64,
    value: f64,
}

/// The best epoch so far on the test data, and the last one.
#[derive(Debug)]
pub(crate) struct BestEpoch {
    watched: Watched,
    best: Cell<Option<Tried>>,
    last: Cell<Option<Tried>>,
}

impl BestEpoch {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        let watched = arguments.watch.unwrap_or(Watched::Loss);
        BestEpoch { watched, best: Cell::new(None), last: Cell::new(None) }
    }

    /// Takes note of an epoch. Returns whether it is the best so far; `None` without test data.
    pub(super) fn look_at(&self, report: &EpochReport) -> Option<bool> {
        let epoch = report.epoch + 1;
        let Some(tested) = &report.evaluation else {
            self.last.set(Some(Tried { epoch, value: report.loss }));
            return None;
        };
        let value = match self.watched {
            Watched::Loss => tested.loss,
            Watched::Accuracy => tested.metric("accuracy")?,
            Watched::Auc => tested.metric("auc")?,
            Watched::Rmse => tested.metric("rmse")?,
        };
        let is_better = |best: Tried| match self.watched {
            Watched::Loss | Watched::Rmse => value < best.value,
            Watched::Accuracy | Watched::Auc => value > best.value,
        };
        let is_best = self.best.get().is_none_or(is_better);
        let tried = Some(Tried { epoch, value });
        self.last.set(tried);
        if is_best {
            self.best.set(tried);
        }
        Some(is_best)
    }

    /// `best: epoch 3, test loss 0.3210; saved in m`; `None` where no epoch was made.
    pub(crate) fn last_line(&self, arguments: &Arguments) -> Option<String> {
        let last = self.last.get()?;
        let name = match self.watched {
            Watched::Loss => "loss",
            Watched::Accuracy => "accuracy",
            Watched::Auc => "AUC",
            Watched::Rmse => "RMSE",
        };
        let path = arguments.save.as_ref().map(|path| path.display());
        let Some(best) = self.best.get() else {
            let Tried { epoch, value } = last;
            let saved = path.map_or_else(not_saved, |path| format!("saved in {path}"));
            return Some(format!("epoch {epoch}: mean loss {value:.6}; {saved}"));
        };
        let saved = match path {
            None => not_saved(),
            Some(path) if arguments.patience.is_some() || best == last => {
                format!("saved in {path}")
            }
            Some(path) => {
                format!("{path} holds epoch {} (--patience keeps the best)", last.epoch)
            }
        };
        Some(format!("best: epoch {}, test {name} {:.6}; {saved}", best.epoch, best.value))
    }
}

fn not_saved() -> String {
    "not saved: --save FILE keeps a model".to_owned()
}
