//! Callbacks, which observe training and may end it.

use super::any_updater::AnyUpdater;
use super::checkpoint::run::save_any;
use super::checkpoint::run_state::CallbackState;
use super::checkpoint::{self, Attachments, CheckpointError, Run};
use super::{EpochReport, EpochTotals, ParameterReport, TrainError};
use crate::error::Result;
use nnz_data::Position;
use nnz_step::model::AnyModel;
use sparse_core::element::Float;
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

/// Observes training, and may end it by `ControlFlow::Break(())`.
///
/// A closure on an [`EpochReport`] is a callback that is called after every epoch:
///
/// ```
/// use nnz::core::update_rules::Sgd;
/// use nnz::training::{EpochReport, Trainer};
/// use std::ops::ControlFlow;
///
/// let trainer = Trainer::new(Sgd::default()).callback(|report: &EpochReport| {
///     match report.loss < 0.1 {
///         true => ControlFlow::Break(()),
///         false => ControlFlow::Continue(()),
///     }
/// });
/// ```
///
/// Callbacks are called in the order in which they were added. All of them are called, also if one
/// ends the run.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be told how training goes",
    note = "a closure can: `|report: &EpochReport| ControlFlow::Continue(())`, with the type of its \
            argument written; or implement `Callback`"
)]
pub trait Callback {
    /// A run begins with this epoch. 0 is a new run, or one whose epochs are
    /// [replayed](Self::replay). Above 0 the run continues with the model that the earlier epochs
    /// have left.
    fn begin(&mut self, epoch: u64) {
        let _ = epoch;
    }

    /// The metric that the callback reads in each report, if any. A run without that metric is
    /// refused.
    fn watches(&self) -> Option<&str> {
        None
    }

    /// Called after an epoch: its report is the last of [`epochs`](Moment::epochs), and all
    /// parameters are up to date.
    ///
    /// # Errors
    ///
    /// Any error ends the run.
    fn epoch(&mut self, report: &EpochReport, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        let _ = (report, moment);
        Ok(ControlFlow::Continue(()))
    }

    /// The number of batches of the epoch, more than `n_batches`, after which
    /// [`batch`](Self::batch) is called next; `None`, the default, for never. It must be a function
    /// of its argument alone. Batches in between may be learnt from many at a time.
    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        let _ = n_batches;
        None
    }

    /// Whether [`batch`](Self::batch) reads [norms of gradients](ParameterReport::gradient_norm),
    /// which are computed for it, of the last batch. A model written by hand without
    /// [`gradient_mut`](nnz_step::model::Model::gradient_mut) is refused then.
    fn sees_gradients(&self) -> bool {
        false
    }

    /// Called between two batches of an epoch. Table rows may still miss steps. An epoch in which a
    /// run is ended here is not reported.
    ///
    /// # Errors
    ///
    /// Any error ends the run.
    fn batch(&mut self, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        let _ = moment;
        Ok(ControlFlow::Continue(()))
    }

    /// Called at the end of a run in which something was done: after its last epoch, or where a
    /// callback has ended it, also between two batches. It is not called for a run that an error
    /// ends, nor for [`partial_fit`](super::Trainer::partial_fit), which has no end.
    ///
    /// # Errors
    ///
    /// Any is the error of the run.
    fn end(&mut self, moment: &Moment<'_>) -> Result<()> {
        let _ = moment;
        Ok(())
    }

    /// The callback's record of all epochs so far, for the file of a run, which has the reports of
    /// the last [`KEPT_REPORTS`](super::checkpoint::KEPT_REPORTS) epochs alone. `None`, the
    /// default, for a callback that needs no record.
    fn state(&self) -> Option<String> {
        None
    }

    /// Continues from a [`state`](Self::state), if it is the callback's own; the earlier epochs are
    /// not [replayed](Self::replay) then. Returns false for the state of another callback, or of
    /// one with another metric.
    fn restore(&mut self, state: &str) -> bool {
        let _ = state;
        false
    }

    /// An earlier epoch of a resumed run: the callback updates what [`epoch`](Self::epoch) would
    /// have updated, without any other effect. The answer to the last one counts. Epochs whose
    /// reports are in the file are replayed, except those in a [state](Self::restore).
    fn replay(&mut self, report: &EpochReport) -> ControlFlow<()> {
        let _ = report;
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(&EpochReport) -> ControlFlow<()>> Callback for F {
    fn epoch(&mut self, report: &EpochReport, _: &Moment<'_>) -> Result<ControlFlow<()>> {
        Ok(self(report))
    }
}

/// The records of callbacks of the epochs before this one.
pub(super) fn states(callbacks: &[Box<dyn Callback + '_>], epoch: u64) -> Vec<CallbackState> {
    let states = callbacks.iter().filter_map(|callback| callback.state());
    states.map(|state| CallbackState { epoch, state }).collect()
}

/// Replays the epochs of a resumed run to callbacks that do not know them. Returns whether one of
/// them has ended the run.
pub(super) fn replay(callbacks: &mut [Box<dyn Callback + '_>], run: &Run) -> bool {
    let known = callbacks.iter_mut().map(|callback| {
        let own = run.callbacks.iter().find(|saved| callback.restore(&saved.state));
        own.map_or(0, |saved| saved.epoch)
    });
    let known = Vec::from_iter(known);
    let mut is_stopped = false;
    for report in &run.epochs {
        is_stopped = false;
        for (callback, first) in callbacks.iter_mut().zip(&known) {
            if report.epoch >= *first {
                is_stopped |= callback.replay(report).is_break();
            }
        }
    }
    is_stopped
}

/// The next multiple of `every`, at least 1, above `n_batches`.
pub(super) fn next_multiple(n_batches: u64, every: u64) -> u64 {
    (n_batches / every).saturating_add(1).saturating_mul(every)
}

/// Whether a callback is called after this number of batches of an epoch, at least 1.
pub(super) fn is_due(callback: &dyn Callback, n_batches: u64) -> bool {
    callback.next_batch(n_batches - 1) == Some(n_batches)
}

/// A run of training between two steps: the view of it that a [`Callback`] gets.
pub struct Moment<'m> {
    run: &'m Run,
    state: &'m dyn State,
    /// By parameter; empty if no callback reads them.
    gradient_norms: &'m [Option<f64>],
}

impl<'m> Moment<'m> {
    pub(super) fn new(run: &'m Run, state: &'m dyn State) -> Self {
        Moment { run, state, gradient_norms: &[] }
    }

    pub(super) fn with_gradients(self, gradient_norms: &'m [Option<f64>]) -> Self {
        Moment { gradient_norms, ..self }
    }

    /// The position of the next batch.
    pub fn position(&self) -> Position {
        self.run.position
    }

    /// The totals of the present epoch.
    pub fn totals(&self) -> &EpochTotals {
        &self.run.totals
    }

    /// The reports of the epochs so far.
    pub fn epochs(&self) -> &[EpochReport] {
        &self.run.epochs
    }

    /// The steps made so far, over all epochs.
    pub fn n_steps(&self) -> u64 {
        self.state.n_steps()
    }

    /// The learning rate of the next step, before any schedule that changes it then.
    pub fn learning_rate(&self) -> f64 {
        self.state.learning_rate()
    }

    /// Norms of the parameters, and of their gradients if they were computed; the numbers of table
    /// rows that are not zero, and of those touched, in the order of declaration. O(values), after
    /// an epoch as [`Table::norms`](nnz_arrays::parameter_memory::Table::norms).
    pub fn parameters(&self) -> Vec<ParameterReport> {
        let mut reports = self.state.parameters();
        for (report, norm) in reports.iter_mut().zip(self.gradient_norms) {
            report.gradient_norm = *norm;
        }
        reports
    }

    /// Saves the parameters, like [`checkpoint::save`].
    ///
    /// # Errors
    ///
    /// As there; [`CheckpointError::Unsettled`] where table rows miss steps, within an epoch: use
    /// [`save_run`](Self::save_run); [`TrainError::ParameterNotFinite`], before anything is
    /// written.
    pub fn save_model(&self, path: &Path) -> Result<()> {
        self.save_model_with(path, Attachments::default())
    }

    /// Like [`save_model`](Self::save_model), with notes by name, as in
    /// [`checkpoint::save_with_notes`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn save_model_with_notes(&self, path: &Path, notes: &[(&str, &str)]) -> Result<()> {
        self.save_model_with(path, Attachments { notes, ..Attachments::default() })
    }

    /// Like [`save_model`](Self::save_model), with notes and ids, as in [`checkpoint::save_with`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn save_model_with(&self, path: &Path, attachments: Attachments<'_>) -> Result<()> {
        self.state.check_finite()?;
        self.state.save_model(path, attachments)
    }

    /// Saves the run so that it can be resumed from here, like [`checkpoint::save_run`].
    ///
    /// # Errors
    ///
    /// As there; [`TrainError::ParameterNotFinite`], before anything is written.
    pub fn save_run(&self, path: &Path) -> Result<()> {
        self.state.check_finite()?;
        self.state.save_run(self.run, path)
    }
}

impl fmt::Debug for Moment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moment")
            .field("position", &self.position())
            .field("totals", self.totals())
            .finish_non_exhaustive()
    }
}

/// A model and its updater, without their types.
pub(super) trait State {
    fn n_steps(&self) -> u64;
    fn learning_rate(&self) -> f64;
    fn parameters(&self) -> Vec<ParameterReport>;
    /// Refuses parameters that are not finite. O(values).
    fn check_finite(&self) -> Result<()>;
    fn save_model(&self, path: &Path, attachments: Attachments<'_>) -> Result<()>;
    fn save_run(&self, run: &Run, path: &Path) -> Result<()>;
}

impl<T: Float> State for (&dyn AnyModel<T>, &dyn AnyUpdater<T>) {
    fn n_steps(&self) -> u64 {
        self.1.clock()
    }

    fn learning_rate(&self) -> f64 {
        self.1.learning_rate()
    }

    fn parameters(&self) -> Vec<ParameterReport> {
        parameter_reports(self.0, &|index| self.1.n_rows_touched(index))
    }

    fn check_finite(&self) -> Result<()> {
        check_finite(self.0)
    }

    fn save_model(&self, path: &Path, attachments: Attachments<'_>) -> Result<()> {
        if self.1.is_settled() {
            checkpoint::parameters::save_any_with(self.0, path, attachments)
        } else {
            Err(CheckpointError::Unsettled { path: path.to_owned() }.into())
        }
    }

    fn save_run(&self, run: &Run, path: &Path) -> Result<()> {
        save_any(self.0, self.1, run, path)
    }
}

/// Refuses a model with a trained parameter that is not finite. O(values).
pub(super) fn check_finite<T: Float>(model: &dyn AnyModel<T>) -> Result<()> {
    for (parameter, info) in model.parameters().into_iter().zip(model.facts().parameters) {
        let bad = first_not_finite(parameter.values());
        if let (Some(at), Some(_)) = (bad, info.gradient) {
            return Err(TrainError::ParameterNotFinite {
                parameter: parameter.name,
                row: at / parameter.shape.row_size().max(1),
                value: parameter.values()[at].as_f64(),
            }
            .into());
        }
    }
    Ok(())
}

fn first_not_finite<T: Float>(values: &[T]) -> Option<usize> {
    values.iter().position(|value| !value.is_finite())
}

/// Reports on the parameters of a model; `n_rows_touched` of each, by position. The cost is that of
/// [`Table::norms`](nnz_arrays::parameter_memory::Table::norms).
pub(super) fn parameter_reports<T: Float>(
    model: &dyn AnyModel<T>,
    n_rows_touched: &dyn Fn(usize) -> Option<u64>,
) -> Vec<ParameterReport> {
    let parameters = model.parameters().into_iter().enumerate();
    parameters
        .map(|(index, parameter)| {
            let norms = parameter.table.norms();
            ParameterReport {
                name: parameter.name,
                norm: norms.sum_of_squares.sqrt(),
                gradient_norm: None,
                n_rows: parameter.shape.n_rows() as u64,
                n_rows_not_zero: norms.n_rows_not_zero,
                n_rows_touched: n_rows_touched(index),
            }
        })
        .collect()
}
