//! A line an epoch, and the warning where a constant is better than the model.

use super::run::Run;
use crate::input::tell_skipped;
use crate::report::summary::{constant_loss, summary_of_pass};
use crate::report::{EpochLine, is_quiet, note, tell};
use nnz::training::{Callback, EpochReport, Moment, TrainError};
use std::cell::Cell;
use std::ops::ControlFlow;

/// What an epoch came to on the training data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Objective {
    pub(super) train_loss: f64,
    pub(super) penalty: f64,
}

/// Prints a line an epoch.
pub(super) struct Lines<'a> {
    run: &'a Run<'a>,
    objective: &'a Cell<Option<Objective>>,
    /// The mean loss of the best constant, where it is known.
    constant_loss: Option<f64>,
    /// Whether it was said that a constant is better.
    is_warned: bool,
    /// Whether it was said what the labels are.
    are_labels_told: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(run: &'a Run<'a>, objective: &'a Cell<Option<Objective>>) -> Self {
        let constant_loss = constant_loss(run.arguments.model.task(), run.train);
        let are_labels_told = run.train.label_statistics().is_some();
        Lines { run, objective, constant_loss, is_warned: false, are_labels_told }
    }

    /// What the first pass over a stream has shown.
    fn look_at_labels(&mut self) {
        if self.constant_loss.is_none() {
            self.constant_loss = constant_loss(self.run.arguments.model.task(), self.run.train);
        }
        let summary = summary_of_pass(&self.run.arguments.data, self.run.train);
        if let Some(summary) = summary.filter(|_| !self.are_labels_told) {
            self.are_labels_told = true;
            note(summary);
        }
    }

    /// Says once that a constant is better than what was learnt. The first of several epochs may be
    /// worse, as its samples are predicted before anything is learnt: but not twice as much.
    fn warn(&mut self, report: &EpochReport, loss: f64, what: &str) {
        let Some(constant) = self.constant_loss.filter(|_| !self.is_warned) else { return };
        let is_early = report.epoch == 0 && report.epochs > 1;
        let bound = if is_early { constant + constant.abs() } else { constant };
        // As many digits as sums in single precision have.
        if loss > bound + 1e-4 * bound.abs() + 1e-6 {
            self.is_warned = true;
            tell(format_args!(
                "warning: the {what} loss of epoch {}, {loss:.6}, is above {constant:.6}, that of the best constant: try another --learning-rate, more --epochs, or features of a smaller scale",
                report.epoch + 1
            ));
        }
    }
}

impl Callback for Lines<'_> {
    fn epoch(&mut self, report: &EpochReport, _: &Moment<'_>) -> nnz::Result<ControlFlow<()>> {
        let objective = self.objective.get();
        let tested = report.evaluation.as_ref();
        let metric = |name| tested?.metric(name);
        let line = EpochLine {
            epoch: report.epoch + 1,
            objective: objective.map(|objective| objective.train_loss + objective.penalty),
            train_loss: objective.map(|objective| objective.train_loss),
            progressive_loss: report.loss,
            seconds: report.seconds,
            samples_per_s: report.samples_per_second(),
            test_loss: tested.map(|score| score.loss),
            test_accuracy: metric("accuracy"),
            test_auc: metric("auc"),
            test_rmse: metric("rmse"),
        };
        tell_skipped(self.run.train);
        self.look_at_labels();
        if let Some((what, value)) = line.not_finite() {
            let (what, epoch) = (what.to_owned(), report.epoch);
            return Err(TrainError::NotFiniteAfterEpoch { what, value, epoch }.into());
        }
        let arguments = self.run.arguments;
        let line = if arguments.json { line.json() } else { line.text(arguments.epochs) };
        if arguments.json || !is_quiet() {
            self.run.output.line(&line);
        }
        match objective {
            Some(objective) => self.warn(report, objective.train_loss, "training"),
            None => self.warn(report, report.loss, "progressive"),
        }
        Ok(ControlFlow::Continue(()))
    }
}
