//! Warnings of steps that are rounded away and states that are not finite, by one batch an epoch.

use super::any_updater::AnyUpdater;
use crate::model::Model;
use sparse_core::element::Stored;

/// The number of batches of an epoch after which the last of them is checked.
pub(super) const PAUSE: u64 = 1;

/// The largest batch, in samples, whose gradients are computed once more.
const LARGEST_BATCH: u64 = 1 << 16;

/// The most bytes of all weights together: gradients may be computed from a copy of them that is
/// without the states beside them.
const MOST_BYTES: u64 = 1 << 28;

/// The most rows of a parameter that are checked.
const MOST_ROWS: usize = 4096;

/// An epoch of fewer batches is checked only if its number, from 1 on, is a power of two.
const FEW_BATCHES: u64 = 128;

/// The number of batches of an epoch that does not know it.
const UNKNOWN: u64 = 1000;

/// The most steps over which what is rounded away adds up.
const MOST_STEPS: u64 = 1_000_000;

/// The checks of a run, and their warnings.
pub(super) struct Numbers {
    batch_size: u64,
    n_values: u64,
    /// Whether any epoch may be checked.
    is_possible: bool,
    is_due: bool,
    n_steps: u64,
    /// By parameter, whether there was a warning.
    warned: Vec<bool>,
    /// In the order in which they came.
    pub(super) warnings: Vec<String>,
}

impl Numbers {
    /// `corrects`: the rule [corrects](sparse_core::update_rules::UpdateRule::CORRECTS) gradients,
    /// and nothing is checked.
    pub(super) fn new<M: Model>(model: &M, batch_size: usize, corrects: bool) -> Self {
        let n_values =
            model.parameters().iter().map(|parameter| parameter.table.len() as u64).sum();
        let (batch_size, size) = (batch_size as u64, size_of::<M::Element>() as u64);
        // A model on a GPU would copy all parameters; one with states would change them.
        let is_possible = !(corrects || M::TAKES_BATCHES || M::WRITES_STATES)
            && batch_size <= LARGEST_BATCH
            && size.saturating_mul(n_values) <= MOST_BYTES;
        Numbers {
            batch_size,
            n_values,
            is_possible,
            is_due: false,
            n_steps: 0,
            warned: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Decides whether an epoch is checked: by its number from 0 on, its number of batches if that
    /// is known, and the number of epochs of the run.
    pub(super) fn start_epoch(&mut self, epoch: u64, n_batches: Option<u64>, n_epochs: u64) {
        let n_batches = n_batches.unwrap_or(UNKNOWN);
        let is_long =
            n_batches >= FEW_BATCHES && n_batches.saturating_mul(self.batch_size) >= self.n_values;
        self.n_steps = n_batches.saturating_mul(n_epochs).min(MOST_STEPS);
        self.is_due = self.is_possible && (is_long || (epoch + 1).is_power_of_two());
    }

    /// Whether a batch of this epoch is checked, before the epoch has come to so many batches.
    pub(super) fn is_ahead(&self, n_batches: u64) -> bool {
        self.is_due && n_batches < PAUSE
    }

    /// Whether the last of so many batches of this epoch is checked.
    pub(super) fn is_now(&self, n_batches: u64) -> bool {
        self.is_due && n_batches == PAUSE
    }

    /// Checks the parameters of a model that has the gradients of a batch.
    pub(super) fn check<M: Model>(&mut self, model: &mut M, updater: &dyn AnyUpdater<M::Element>) {
        self.warned.resize(M::PARAMETERS.len(), false);
        for (index, warned) in self.warned.iter_mut().enumerate().filter(|(_, warned)| !**warned) {
            let (mut rows, mut gradients) = (Vec::new(), Vec::new());
            if let Some(gradient) = model.gradient_mut(index) {
                for (row, values) in gradient.view().iter_rows().take(MOST_ROWS) {
                    rows.push(row);
                    gradients.extend_from_slice(values);
                }
            }
            let parameters = model.parameters();
            let Some(parameter) = parameters.get(index) else { continue };
            let table = parameter.table;
            let found = updater.precision(index, table, (&rows, &gradients), self.n_steps);
            let element = <M::Element as Stored>::TYPE.name();
            if let Some(text) = found.warning(parameter.name, element) {
                tracing::warn!("{text}");
                self.warnings.push(text);
                *warned = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::linear::Linear;
    use super::*;
    use crate::data::{BatchOptions, Batches, DataSource, Dataset};
    use crate::formats::Csr;
    use crate::optimizer::Updater;
    use sparse_core::update_rules::Sgd;

    /// A weight of 1, whose gradient is 1 at each step.
    #[test]
    fn n13_a_table_that_mostly_does_not_move_has_one_warning() -> crate::Result<()> {
        let warnings = |learning_rate: f64| -> crate::Result<Vec<String>> {
            let mut model = Linear::<f32>::new(1);
            model.w.values_mut()[0] = 1.0;
            let rule = Sgd { learning_rate, ..Sgd::default() };
            let updater = Updater::for_model(rule, &model)?;
            let data = Dataset::new(Csr::from_rows(1, [[(0, 1.0)]]).unwrap(), vec![0.0]).unwrap();
            let mut batches = data.batches(Linear::<f32>::INPUTS, &BatchOptions::default())?;
            batches.start_epoch(0)?;
            let batch = batches.next_batch()?.unwrap();
            let bound = model.bind(&batch)?;
            model.loss_and_grads(&bound)?;
            let mut numbers = Numbers::new(&model, 1, false);
            for epoch in 0..3 {
                numbers.start_epoch(epoch, Some(10_000_000), 3);
                assert!(numbers.is_ahead(0) && numbers.is_now(PAUSE) && !numbers.is_ahead(PAUSE));
                numbers.check(&mut model, &updater);
            }
            Ok(numbers.warnings)
        };
        assert!(warnings(1e-3)?.is_empty());
        let told = warnings(2e-8)?;
        let [warning] = &told[..] else { panic!("{told:?}") };
        assert!(
            warning.starts_with("parameter `w` mostly does not move: the steps of 1 of 1"),
            "{warning}"
        );
        assert!(warning.contains("weights of `f32`"), "{warning}");
        Ok(())
    }

    #[test]
    fn n13_short_epochs_are_seldom_checked_and_large_batches_and_models_never() {
        let model = Linear::<f32>::new(1000);
        let mut numbers = Numbers::new(&model, 64, false);
        let mut is_due = |epoch, n_batches| {
            numbers.start_epoch(epoch, n_batches, 10);
            numbers.is_ahead(0)
        };
        let of_one_batch = Vec::from_iter((0..8).filter(|epoch| is_due(*epoch, Some(1))));
        assert_eq!(of_one_batch, [0, 1, 3, 7]);
        assert!(is_due(6, Some(FEW_BATCHES)) && is_due(6, None));
        let is_ever = |mut numbers: Numbers| {
            numbers.start_epoch(0, None, 10);
            numbers.is_ahead(0)
        };
        let large_batch = LARGEST_BATCH as usize + 1;
        assert!(is_ever(Numbers::new(&model, 64, false)));
        assert!(!is_ever(Numbers::new(&model, large_batch, false)));
        assert!(!is_ever(Numbers::new(&model, 64, true)));
        // More weights than samples: seldom.
        let mut numbers = Numbers::new(&model, 1, false);
        numbers.start_epoch(6, Some(FEW_BATCHES), 10);
        assert!(!numbers.is_ahead(0));
    }
}
