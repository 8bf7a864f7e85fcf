//! What is seen of a run: a table with a row at doubling counts of samples of the first epoch and
//! one after each epoch, a bar on a terminal, and the warning where a constant is better.

use super::best_epoch::BestEpoch;
use super::run::Run;
use crate::input::tell_skipped;
use crate::report::bar::{Advance, Bar};
use crate::report::summary::{constant_loss, summary_of_pass};
use crate::report::training_table::{TableRow, TrainingTable};
use crate::report::{EpochLine, ProgressPoint, is_quiet, note, tell};
use nnz::data::DataSource;
use nnz::training::{Callback, EpochReport, EpochTotals, Moment, TrainError};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::Instant;

/// What an epoch came to on the training data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Objective {
    pub(super) train_loss: f64,
    pub(super) penalty: f64,
}

/// Prints the table, or a JSON object an epoch.
pub(super) struct Lines<'a> {
    run: &'a Run<'a>,
    objective: &'a Cell<Option<Objective>>,
    best: &'a BestEpoch,
    /// What is measured on the test data.
    tested: Vec<&'static str>,
    table: TrainingTable,
    bar: Bar,
    /// When training began, and when the present epoch did.
    begun: [Instant; 2],
    /// The totals of the epoch at the row before.
    before: EpochTotals,
    /// The rows within the present epoch.
    points: Vec<ProgressPoint>,
    /// The mean loss of the best constant, where it is known.
    constant_loss: Option<f64>,
    /// Whether it was said that a constant is better.
    is_warned: bool,
    /// Whether it was said what the labels are.
    are_labels_told: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(
        run: &'a Run<'a>,
        objective: &'a Cell<Option<Objective>>,
        best: &'a BestEpoch,
    ) -> Self {
        let constant_loss = constant_loss(run.kind, run.train);
        let are_labels_told = run.train.label_statistics().is_some();
        let mut tested = Vec::new();
        if run.test.is_some() {
            let metrics = run.arguments.model.metrics(None);
            tested = vec!["loss"];
            tested.extend(metrics.iter().map(|metric| metric.name()));
        }
        let titles = EpochLine::titles(run.arguments.objective, &tested);
        Lines {
            run,
            objective,
            best,
            tested,
            table: TrainingTable::new(titles),
            bar: Bar::new(),
            begun: [Instant::now(); 2],
            before: EpochTotals::default(),
            points: Vec::new(),
            constant_loss,
            is_warned: false,
            are_labels_told,
        }
    }

    /// A line of the table, where there is one.
    fn print(&mut self, line: &str) {
        if !self.run.arguments.json && !is_quiet() {
            self.bar.clear();
            self.run.output.line(line);
        }
    }

    /// The row of an epoch, or of a part of it.
    fn print_row(
        &mut self,
        epoch: u64,
        samples: u64,
        rate: f64,
        row: &EpochLine,
        last: Option<f64>,
    ) {
        let line = self.table.line(&TableRow {
            epoch: epoch + 1,
            is_best: row.best == Some(true),
            samples,
            measured: row.measured(last, &self.tested),
            samples_per_s: rate,
            seconds: self.begun[0].elapsed().as_secs_f64(),
        });
        self.print(&line);
    }

    /// The mean loss over the samples since the row before; `None` where that is no part of the
    /// epoch, and at the first row of it.
    fn since_last(&self, n_rows: u64, mean_loss: f64) -> Option<f64> {
        let since = n_rows.checked_sub(self.before.n_rows).filter(|n_rows| *n_rows > 0)?;
        Some((mean_loss * n_rows as f64 - self.before.loss_sum) / since as f64)
    }

    /// The number of batches between two drawings of the bar.
    fn batches_between_drawings(&self) -> u64 {
        /// The steps of a whole bar; it is drawn less often where they are short.
        const STEPS: u64 = 400;
        /// Samples between two drawings where there is no saying how many there are.
        const SAMPLES: u64 = 1 << 16;
        let rows = self.run.train.n_rows().map_or(SAMPLES * STEPS, |n_rows| n_rows as u64);
        (rows / self.run.arguments.batch_size as u64 / STEPS).max(1)
    }

    /// What the first pass over a stream has shown.
    fn look_at_labels(&mut self) {
        if self.constant_loss.is_none() {
            self.constant_loss = constant_loss(self.run.kind, self.run.train);
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
    fn begin(&mut self, _: u64) {
        self.begun = [Instant::now(); 2];
        self.before = EpochTotals::default();
        self.points.clear();
        let titles = self.table.titles();
        self.print(&titles);
    }

    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        let doubled = n_batches.checked_add(1)?.checked_next_power_of_two();
        if !self.bar.is_shown() {
            return doubled;
        }
        let every = self.batches_between_drawings();
        let drawn = (n_batches / every).saturating_add(1).saturating_mul(every);
        Some(doubled.map_or(drawn, |doubled| doubled.min(drawn)))
    }

    fn batch(&mut self, moment: &Moment<'_>) -> nnz::Result<ControlFlow<()>> {
        let (position, totals) = (moment.position(), moment.totals());
        let seconds = self.begun[1].elapsed().as_secs_f64();
        // Later epochs are short stories: their samples have been learnt from before.
        if position.epoch == 0 && position.batch.is_power_of_two() {
            let since_last = self.since_last(totals.n_rows, totals.mean_loss());
            let row = EpochLine { progressive_loss: totals.mean_loss(), ..EpochLine::default() };
            let rate = totals.n_rows as f64 / seconds;
            self.print_row(position.epoch, totals.n_rows, rate, &row, since_last);
            self.points.push(ProgressPoint {
                samples: totals.n_rows,
                progressive_loss: row.progressive_loss,
                since_last: since_last.unwrap_or(row.progressive_loss),
                seconds: self.begun[0].elapsed().as_secs_f64(),
            });
            self.before = *totals;
        }
        self.bar.draw(&Advance {
            epoch: position.epoch + 1,
            epochs: self.run.arguments.epochs,
            samples: totals.n_rows,
            all_samples: self.run.train.n_rows().map(|n_rows| n_rows as u64),
            seconds,
        });
        Ok(ControlFlow::Continue(()))
    }

    fn epoch(&mut self, report: &EpochReport, _: &Moment<'_>) -> nnz::Result<ControlFlow<()>> {
        self.bar.clear();
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
            best: self.best.look_at(report),
            progress: std::mem::take(&mut self.points),
        };
        tell_skipped(self.run.train);
        self.look_at_labels();
        if let Some((what, value)) = line.not_finite() {
            let (what, epoch) = (what.to_owned(), report.epoch);
            return Err(TrainError::NotFiniteAfterEpoch { what, value, epoch }.into());
        }
        if self.run.arguments.json {
            self.run.output.line(&line.json());
        } else {
            let is_divided = self.before.n_rows > 0;
            let since_last = self.since_last(report.n_rows, report.loss).filter(|_| is_divided);
            self.print_row(report.epoch, report.n_rows, line.samples_per_s, &line, since_last);
        }
        self.before = EpochTotals::default();
        self.begun[1] = Instant::now();
        match objective {
            Some(objective) => self.warn(report, objective.train_loss, "training"),
            None => self.warn(report, report.loss, "progressive"),
        }
        Ok(ControlFlow::Continue(()))
    }

    fn replay(&mut self, report: &EpochReport) -> ControlFlow<()> {
        self.best.look_at(report);
        ControlFlow::Continue(())
    }
}
