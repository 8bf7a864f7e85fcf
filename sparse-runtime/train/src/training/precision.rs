//! Warnings of steps that are rounded away and states that are not finite, by one batch an epoch.

use super::any_updater::AnyUpdater;
use super::padding::has_fixed_batches;
use super::settled_copy::{SettledCopy, bytes_of};
use crate::error::Result;
use nnz_arrays::in_library;
use nnz_data::Part;
use nnz_step::model::{AnyModel, BatchSource, ModelFacts, gradient};
use nnz_step::optimizer::Precision;
use sparse_core::element::Float;
use std::ops::Range;

/// The most samples of a batch that are checked: the first ones.
const MOST_SAMPLES: usize = 1 << 16;

/// Weights of more bytes make a large model. The check maps a page for each table row that it
/// reads, in the worst case as many bytes as the weights have.
const LARGE_MODEL: usize = 1 << 28;

/// The most samples that are checked of a large model.
const MOST_SAMPLES_OF_LARGE: usize = 256;

/// The samples that are checked where each is a step of its own.
const STEPS: usize = 32;

/// The most table rows of a parameter that are checked.
const MOST_ROWS: usize = 4096;

/// An epoch of fewer batches is checked only if its number, from 1 on, is a power of two.
const FEW_BATCHES: u64 = 128;

/// In an epoch whose number of batches is not known, the checked batches are 0, 1, 4, 16 and so on.
const FACTOR: u64 = 4;

/// The number of batches that such an epoch is taken to have.
const UNKNOWN: u64 = 1000;

/// The most steps over which lost digits add up.
const MOST_STEPS: u64 = 1_000_000;

/// The checks of a run, and their warnings. They are made before a step, on a model of their own:
/// parameters, states, outputs and whatever else the model in training has stay as they are.
pub(super) struct Checks<'w> {
    /// Whether any epoch may be checked.
    is_possible: bool,
    is_due: bool,
    n_batches: Option<u64>,
    n_steps: u64,
    max_norm: Option<f64>,
    /// By parameter, whether there was a warning.
    warned: &'w mut Vec<bool>,
    /// In the order in which they came.
    pub(super) warnings: Vec<String>,
}

impl<'w> Checks<'w> {
    /// `corrects`: the rule [corrects](nnz_optim::UpdateRule::CORRECTS) gradients,
    /// and nothing is checked. `max_norm` is that of gradients together. `warned` says of each
    /// parameter whether there was a warning before.
    pub(super) fn new(
        model: &ModelFacts,
        corrects: bool,
        max_norm: Option<f64>,
        warned: &'w mut Vec<bool>,
    ) -> Self {
        warned.resize(model.parameters.len(), false);
        Checks {
            // The copy of a model that computes elsewhere would be there as well.
            is_possible: !corrects && !model.takes_batches,
            is_due: false,
            n_batches: None,
            n_steps: 0,
            max_norm,
            warned,
            warnings: Vec::new(),
        }
    }

    /// Decides whether an epoch is checked: by its number from 0 on, its number of batches if that
    /// is known, and the number of steps that the run makes at least.
    pub(super) fn start_epoch(&mut self, epoch: u64, n_batches: Option<u64>, n_steps: u64) {
        self.n_batches = n_batches.or(self.n_batches);
        self.n_steps = n_steps.min(MOST_STEPS);
        let is_long = self.n_batches.unwrap_or(UNKNOWN) >= FEW_BATCHES;
        let has_all = self.warned.iter().all(|warned| *warned);
        self.is_due = self.is_possible && !has_all && (is_long || (epoch + 1).is_power_of_two());
    }

    /// Records the number of batches of an epoch, for the next one.
    pub(super) fn end_epoch(&mut self, n_batches: u64) {
        self.n_batches = Some(n_batches);
    }

    /// The batches of an epoch, if their number is known or assumed.
    pub(super) fn batches_of(n_batches: Option<u64>) -> u64 {
        n_batches.unwrap_or(UNKNOWN)
    }

    /// The number of batches until the next checked one, if any, in an epoch with `n_batches` so
    /// far. It is the one in the middle, where steps are neither the first nor, at a rate that
    /// falls to zero, the last.
    pub(super) fn steps_until(&self, n_batches: u64) -> u64 {
        let next = match self.n_batches {
            _ if !self.is_due => None,
            Some(all) => (n_batches <= all / 2).then_some(all / 2),
            None if n_batches == 0 => Some(0),
            None => {
                let mut powers = std::iter::successors(Some(1u64), |at| at.checked_mul(FACTOR));
                powers.find(|at| *at >= n_batches)
            }
        };
        next.map_or(u64::MAX, |next| next - n_batches)
    }

    /// Checks the next batch; `by_rows` where each of its samples is a step. Faults of the batch
    /// are left to the step itself.
    pub(super) fn check<T: Float>(
        &mut self,
        model: &dyn AnyModel<T>,
        updater: &dyn AnyUpdater<T>,
        batch: &dyn BatchSource<'_, T>,
        by_rows: bool,
    ) {
        let checks = self;
        in_library!(<T> Checks::check_batch::<T> => (
            checks: &mut Checks<'_>,
            model: &dyn AnyModel<T>,
            updater: &dyn AnyUpdater<T>,
            batch: &dyn BatchSource<'_, T>,
            by_rows: bool,
        ) -> ());
    }

    fn check_batch<T: Float>(
        &mut self,
        model: &dyn AnyModel<T>,
        updater: &dyn AnyUpdater<T>,
        batch: &dyn BatchSource<'_, T>,
        by_rows: bool,
    ) {
        let Ok(found) = self.look(model, updater, batch, by_rows) else { return };
        let element = T::TYPE.name();
        let parameters = found.iter().zip(model.facts().parameters).zip(&mut *self.warned);
        for ((found, info), warned) in parameters.filter(|(_, warned)| !**warned) {
            if let Some(text) = found.warning(info.name, element) {
                tracing::warn!("{text}");
                self.warnings.push(text);
                *warned = true;
            }
        }
    }

    /// The effect of the next step on the rows of each parameter.
    fn look<T: Float>(
        &self,
        model: &dyn AnyModel<T>,
        updater: &dyn AnyUpdater<T>,
        batch: &dyn BatchSource<'_, T>,
        by_rows: bool,
    ) -> Result<Vec<Precision>> {
        let inputs = model.facts().inputs;
        let mut found = vec![Precision::default(); model.facts().parameters.len()];
        let Some(mut copy) = SettledCopy::of(model)? else { return Ok(found) };
        let mut add = |samples: Option<Range<usize>>| -> Result<()> {
            let samples = samples.unwrap_or(0..batch.n_rows());
            let part;
            let batch: &dyn BatchSource<'_, T> = if samples.len() == batch.n_rows() {
                batch
            } else {
                part = Part::new(batch, samples);
                &part
            };
            let copy = copy.with_rows_of(model, updater, batch)?;
            copy.loss_and_grads(batch)?;
            if let Some(max_norm) = self.max_norm {
                gradient::clip_of(copy, max_norm)?;
            }
            for (index, found) in found.iter_mut().enumerate() {
                *found += precision(copy, model, updater, index, self.n_steps);
            }
            Ok(())
        };
        let n_samples = batch.n_rows();
        let is_large = bytes_of(model) > LARGE_MODEL;
        let most = if is_large { MOST_SAMPLES_OF_LARGE } else { MOST_SAMPLES };
        if by_rows {
            let samples = 0..n_samples.min(STEPS);
            samples.into_iter().try_for_each(|sample| add(Some(sample..sample + 1)))?;
        } else if n_samples <= most || has_fixed_batches(inputs) {
            add(None)?;
        } else {
            add(Some(0..most))?;
        }
        Ok(found)
    }
}

/// Counts the table rows of a parameter that have a gradient in `copy`, by the effect of the next
/// step of `model`.
fn precision<T: Float>(
    copy: &mut dyn AnyModel<T>,
    model: &dyn AnyModel<T>,
    updater: &dyn AnyUpdater<T>,
    index: usize,
    n_steps: u64,
) -> Precision {
    let (mut rows, mut gradients) = (Vec::new(), Vec::new());
    if let Some(gradient) = copy.gradient_mut(index) {
        for (row, values) in gradient.view().iter_rows().take(MOST_ROWS) {
            rows.push(row);
            gradients.extend_from_slice(values);
        }
    }
    let parameters = model.parameters();
    parameters.get(index).map_or(Precision::default(), |parameter| {
        updater.precision(index, parameter.table, (&rows, &gradients), n_steps)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::linear::Linear;
    use super::*;

    /// The batches of an epoch that are checked.
    fn checked(checks: &Checks<'_>, n_batches: u64) -> Vec<u64> {
        let (mut at, mut batches) = (0, Vec::new());
        while at < n_batches {
            at = at.saturating_add(checks.steps_until(at));
            batches.extend((at < n_batches).then_some(at));
            at = at.saturating_add(1);
        }
        batches
    }

    #[test]
    fn n13_the_middle_batch_of_an_epoch_is_checked_and_few_of_a_stream() {
        let mut warned = Vec::new();
        let mut checks = Checks::new(&ModelFacts::of::<Linear<f32>>(), false, None, &mut warned);
        checks.start_epoch(0, None, 1000);
        assert_eq!(checked(&checks, 20), [0, 1, 4, 16]);
        checks.end_epoch(1000);
        checks.start_epoch(1, None, 1000);
        assert_eq!(checked(&checks, 1000), [500]);
        for (n_batches, at) in [(1, 0), (2, 1), (3, 1), (300, 150)] {
            checks.start_epoch(0, Some(n_batches), 1000);
            assert_eq!(checked(&checks, n_batches), [at]);
        }
    }

    #[test]
    fn n13_short_epochs_are_seldom_checked_and_those_without_a_use_never() {
        let mut warned = Vec::new();
        let mut checks = Checks::new(&ModelFacts::of::<Linear<f32>>(), false, None, &mut warned);
        let mut is_checked = |epoch, n_batches| {
            checks.start_epoch(epoch, Some(n_batches), 1000);
            !checked(&checks, n_batches).is_empty()
        };
        let of_one_batch = Vec::from_iter((0..8).filter(|epoch| is_checked(*epoch, 1)));
        assert_eq!(of_one_batch, [0, 1, 3, 7]);
        assert!(is_checked(6, FEW_BATCHES));
        let mut warned = vec![true; 2];
        for (corrects, has_warned) in [(true, false), (false, true)] {
            let mut none = Vec::new();
            let warned = if has_warned { &mut warned } else { &mut none };
            let mut checks = Checks::new(&ModelFacts::of::<Linear<f32>>(), corrects, None, warned);
            checks.start_epoch(0, Some(1000), 1000);
            assert!(checked(&checks, 1000).is_empty());
        }
    }
}
