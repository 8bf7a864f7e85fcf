//! Training: epochs, evaluation, predictions, progress, checkpoints.
//!
//! [`Trainer`] is the entry point. Its parts are public too, for your own loops: [`fit_epoch`],
//! [`score()`], [`predict`]. [`checkpoint`] saves and loads.

mod ahead;
mod any_updater;
mod blame;
mod callback;
pub mod checkpoint;
mod epoch;
mod error;
mod evaluated;
mod evaluation;
mod fit;
mod hogwild;
mod hook;
mod json;
mod lead;
mod measure;
mod monitor;
mod padding;
mod pauses;
mod plan;
#[cfg(feature = "plot")]
mod plot;
mod precision;
mod predictions;
mod progress;
mod progressive;
mod reduced;
mod report;
mod save;
mod score;
mod settled_copy;
mod steps;
#[cfg(test)]
pub(crate) mod tests;
mod trainer;
mod watch;
mod workers;

pub use callback::{Callback, Moment};
pub use epoch::{BatchHook, EpochTotals, fit_epoch, fit_from};
pub use error::TrainError;
pub use evaluation::{EvaluatedOn, Evaluation, NoEvaluation};
pub use hogwild::Hogwild;
pub use monitor::{Monitor, ParameterReport};
pub use predictions::{
    save_changed_predictions, save_predictions, write_changed_predictions, write_predictions,
};
pub use progress::Progress;
pub use progressive::{ProgressiveLine, ProgressiveLoss};
pub use report::{EpochReport, FitReport, ScoreReport};
pub use save::Checkpoints;
pub use score::{predict, score};
pub use trainer::Trainer;
pub use watch::{BestModel, EarlyStopping, Watch};
