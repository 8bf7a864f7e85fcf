//! Training: epochs, evaluation, predictions, progress, checkpoints.
//!
//! [`Trainer`] is the way in. What it is made of is public as well, for loops of one's own: [`fit_epoch`],
//! [`score()`], [`predict`]. [`checkpoint`] saves and loads.

pub mod checkpoint;
mod epoch;
mod error;
mod measure;
mod predictions;
mod progress;
mod reduced;
mod report;
mod score;
#[cfg(test)]
mod tests;
mod trainer;

pub use epoch::{BatchHook, EpochTotals, fit_epoch};
pub use error::TrainError;
pub use predictions::{save_predictions, write_predictions};
pub use progress::Progress;
pub use report::{EpochReport, FitReport, ScoreReport};
pub use score::{predict, score};
pub use trainer::{Evaluation, NoEvaluation, Trainer};
