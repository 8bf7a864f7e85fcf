//! The position, totals, reports and settings of a run.

use crate::training::{EpochReport, EpochTotals};
use nnz_data::Position;
use serde::{Deserialize, Serialize};

/// The state of a run of training besides its model and its updater. There is no random state:
/// orders are functions of seed and epoch, which are settings and position. Nor is there a state of
/// the schedule, a function of step and epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The next batch.
    pub position: Position,
    /// The totals of its epoch so far.
    pub totals: EpochTotals,
    /// The state of each metric of the training data [so far](crate::metric::Accumulator::numbers)
    /// in that epoch.
    #[serde(skip)]
    pub metrics: Vec<Vec<f64>>,
    /// The epochs before it. A file has the last [`KEPT_REPORTS`] of them, so that its size is
    /// bounded.
    pub epochs: Vec<EpochReport>,
    /// The records of callbacks about the epochs before the last of these.
    #[serde(default)]
    pub callbacks: Vec<CallbackState>,
    /// Settings on which the result depends and which a program may change, by name, as text: a
    /// resumed run requires the same. The settings of the updater (its rule with all
    /// hyperparameters, the scales of parameters) are added and compared without being listed here.
    pub settings: Vec<(String, String)>,
}

/// The largest number of reports in the file of a run.
pub const KEPT_REPORTS: usize = 256;

/// The record that a callback [keeps](crate::training::Callback::state) of the epochs of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallbackState {
    /// The first epoch that it does not include.
    pub epoch: u64,
    /// The record, in the callback's own form.
    pub state: String,
}
