//! Training: epochs, evaluation, predictions, progress, checkpoints.
//!
//! [`Trainer`] is the entry point. Its parts are public too, for your own loops: [`fit_epoch`],
//! [`score()`], [`predict`]. [`checkpoint`] saves and loads.

mod any_batches;
mod any_updater;
mod batch_hook;
mod batch_loop;
mod blame;
mod callback;
pub mod checkpoint;
mod checkpoint_callback;
mod coordinator;
mod early_stopping;
mod epoch_totals;
mod epochs;
mod error;
mod evaluation;
mod evaluation_batches;
mod fit;
mod hogwild;
mod json;
mod lookahead;
mod measure;
mod padding;
mod parameter_stats;
mod pauses;
mod plot;
mod precision;
mod predictions;
mod progress;
mod progressive;
mod report;
mod score;
mod settled_copy;
#[cfg(test)]
pub(crate) mod tests;
mod trainer;
mod trainer_config;
mod trainer_hook;
mod variance_reduction;
mod workers;

pub use batch_hook::BatchHook;
pub use batch_loop::{fit_epoch, fit_from};
pub use callback::{Callback, Moment};
pub use checkpoint_callback::Checkpoints;
pub use early_stopping::{BestModel, EarlyStopping, Watch};
pub use epoch_totals::EpochTotals;
pub use error::TrainError;
pub use evaluation::{EvaluatedOn, Evaluation, NoEvaluation};
pub use hogwild::Hogwild;
pub use parameter_stats::{Monitor, ParameterReport};
pub use predictions::{
    save_changed_predictions, save_predictions, write_changed_predictions, write_predictions,
};
pub use progress::Progress;
pub use progressive::{ProgressiveLine, ProgressiveLoss};
pub use report::{EpochReport, FitReport, ScoreReport};
pub use score::{predict, score, score_into};
pub use trainer::Trainer;
