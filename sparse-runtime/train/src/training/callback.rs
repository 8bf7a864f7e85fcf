//! Who is told how training goes, and may end it.

use super::any_updater::AnyUpdater;
use super::checkpoint::run::CallbackState;
use super::checkpoint::run::save_any;
use super::checkpoint::{self, Attachments, CheckpointError, Run};
use super::{EpochReport, EpochTotals, ParameterReport, TrainError};
use crate::data::Position;
use crate::error::Result;
use crate::model::Model;
use sparse_core::element::Float;
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

/// Somebody who is told how training goes, and may end it by `ControlFlow::Break(())`.
///
/// A closure on an [`EpochReport`] is one that is told after every epoch:
///
/// ```
/// use sparse_core::update_rules::Sgd;
/// use sparse_runtime::training::{EpochReport, Trainer};
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
/// Callbacks are called in the order in which they were given. Everybody is told, whoever ends the run.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be told how training goes",
    note = "a closure can: `|report: &EpochReport| ControlFlow::Continue(())`, with the type of its \
            argument written; or implement `Callback`"
)]
pub trait Callback {
    /// A run begins, with this epoch: at 0 a new one, or one whose epochs are [told again](Self::replay); above 0 one goes on with the model that
    /// the epochs before have left.
    fn begin(&mut self, epoch: u64) {
        let _ = epoch;
    }

    /// The metric that it looks at in each report, if there is one: without it nothing is trained.
    fn watches(&self) -> Option<&str> {
        None
    }

    /// After an epoch: its report is the last of [`epochs`](Moment::epochs), and all parameters are up to date.
    ///
    /// # Errors
    ///
    /// Any error ends the run.
    fn epoch(&mut self, report: &EpochReport, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        let _ = (report, moment);
        Ok(ControlFlow::Continue(()))
    }

    /// After how many batches of an epoch, more than `n_batches`, [`batch`](Self::batch) is to be called next; `None`, the
    /// default, for not at all. A function of nothing but its argument. Batches in between may be learnt from many at a time.
    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        let _ = n_batches;
        None
    }

    /// Whether [`batch`](Self::batch) asks for [norms of
    /// gradients](ParameterReport::gradient_norm), which are computed for it: of the batch that was
    /// learnt from last. A model written by hand without [`gradient_mut`](Model::gradient_mut) is
    /// refused then.
    fn sees_gradients(&self) -> bool {
        false
    }

    /// Between two batches of an epoch. Rows may wait for steps that they missed. Where a run is ended here, the epoch is not reported.
    ///
    /// # Errors
    ///
    /// Any error ends the run.
    fn batch(&mut self, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        let _ = moment;
        Ok(ControlFlow::Continue(()))
    }

    /// A run ends, of which something was done: after its last epoch, or where somebody has ended it, also between two batches. Nobody is told of the
    /// end of a run that an error ends, nor of one by [`partial_fit`](super::Trainer::partial_fit), which has none.
    ///
    /// # Errors
    ///
    /// Any is the error of the run.
    fn end(&mut self, moment: &Moment<'_>) -> Result<()> {
        let _ = moment;
        Ok(())
    }

    /// What it has kept of all epochs so far, for the file of a run: such a file has the reports of the last
    /// [`KEPT_REPORTS`](super::checkpoint::KEPT_REPORTS) epochs alone. `None`, the default, of a callback that needs no others.
    fn state(&self) -> Option<String> {
        None
    }

    /// Goes on from a [`state`](Self::state), if it is its own: then the epochs before are not [told again](Self::replay). False of the state of
    /// another callback, or of one that watches something else.
    fn restore(&mut self, state: &str) -> bool {
        let _ = state;
        false
    }

    /// An epoch of a run that is being resumed, made before: what [`epoch`](Self::epoch) would have learnt from it, without doing
    /// anything. What it answers to the last one counts. Told are the epochs whose reports are in the file, but for those that a
    /// [state](Self::restore) has.
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

/// What callbacks have kept of the epochs before this one.
pub(super) fn states(callbacks: &[Box<dyn Callback + '_>], epoch: u64) -> Vec<CallbackState> {
    let states = callbacks.iter().filter_map(|callback| callback.state());
    states.map(|state| CallbackState { epoch, state }).collect()
}

/// Tells callbacks of the epochs of a run that is resumed, as far as they do not know them; whether one of them has ended the run.
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

/// After how many batches, more than `n_batches`, there is a multiple of `every`, which is at least 1.
pub(super) fn next_multiple(n_batches: u64, every: u64) -> u64 {
    (n_batches / every).saturating_add(1).saturating_mul(every)
}

/// Whether a callback is to be told after so many batches of an epoch, at least 1.
pub(super) fn is_due(callback: &dyn Callback, n_batches: u64) -> bool {
    callback.next_batch(n_batches - 1) == Some(n_batches)
}

/// A run of training between two steps: what a [`Callback`] may look at.
pub struct Moment<'m> {
    run: &'m Run,
    state: &'m dyn State,
    /// By parameter; empty where nobody has asked.
    gradient_norms: &'m [Option<f64>],
}

impl<'m> Moment<'m> {
    pub(super) fn new(run: &'m Run, state: &'m dyn State) -> Self {
        Moment { run, state, gradient_norms: &[] }
    }

    pub(super) fn with_gradients(self, gradient_norms: &'m [Option<f64>]) -> Self {
        Moment { gradient_norms, ..self }
    }

    /// Which batch comes next.
    pub fn position(&self) -> Position {
        self.run.position
    }

    /// What the present epoch has come to.
    pub fn totals(&self) -> &EpochTotals {
        &self.run.totals
    }

    /// The epochs so far.
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

    /// Norms of the parameters and perhaps of their gradients, their rows that are not zero, and those that were touched, in the order of
    /// their declaration. O(values).
    pub fn parameters(&self) -> Vec<ParameterReport> {
        let mut reports = self.state.parameters();
        for (report, norm) in reports.iter_mut().zip(self.gradient_norms) {
            report.gradient_norm = *norm;
        }
        reports
    }

    /// Saves the parameters, as [`checkpoint::save`].
    ///
    /// # Errors
    ///
    /// As there; [`CheckpointError::Unsettled`] where rows wait, within an epoch: then [`save_run`](Self::save_run) can;
    /// [`TrainError::ParameterNotFinite`], before anything is written.
    pub fn save_model(&self, path: &Path) -> Result<()> {
        self.save_model_with(path, Attachments::default())
    }

    /// As [`save_model`](Self::save_model), with notes by name, as [`checkpoint::save_with_notes`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn save_model_with_notes(&self, path: &Path, notes: &[(&str, &str)]) -> Result<()> {
        self.save_model_with(path, Attachments { notes, ..Attachments::default() })
    }

    /// As [`save_model`](Self::save_model), with notes and ids, as [`checkpoint::save_with`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn save_model_with(&self, path: &Path, attachments: Attachments<'_>) -> Result<()> {
        self.state.check_finite()?;
        self.state.save_model(path, attachments)
    }

    /// Saves all that it takes to go on from here, as [`checkpoint::save_run`].
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

/// A model and its updater, whatever their types.
pub(super) trait State {
    fn n_steps(&self) -> u64;
    fn learning_rate(&self) -> f64;
    fn parameters(&self) -> Vec<ParameterReport>;
    /// Refuses parameters that are not finite. O(values).
    fn check_finite(&self) -> Result<()>;
    fn save_model(&self, path: &Path, attachments: Attachments<'_>) -> Result<()>;
    fn save_run(&self, run: &Run, path: &Path) -> Result<()>;
}

impl<M: Model> State for (&M, &dyn AnyUpdater<M::Element>) {
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
        match self.1.is_settled() {
            true => checkpoint::save_with(self.0, path, attachments),
            false => Err(CheckpointError::Unsettled { path: path.to_owned() }.into()),
        }
    }

    fn save_run(&self, run: &Run, path: &Path) -> Result<()> {
        save_any(self.0, self.1, run, path)
    }
}

/// Refuses a model of which a trained parameter holds a number that is not finite. O(values).
pub(super) fn check_finite<M: Model>(model: &M) -> Result<()> {
    for (parameter, info) in model.parameters().into_iter().zip(M::PARAMETERS) {
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

/// The parameters of a model; `n_rows_touched` of each, by position. What it costs is what [`Table::norms`](crate::parameter_memory::Table::norms) does.
pub(super) fn parameter_reports<M: Model>(
    model: &M,
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
