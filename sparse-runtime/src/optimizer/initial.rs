//! Weights that a rule starts from.

use super::error::OptimizerError;
use super::updater::Updater;
use crate::error::Result;
use crate::model::Model;
use num_traits::One;
use sparse_core::element::Float;
use sparse_core::update_rules::{Step, UpdateRule};

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Refuses a model some of whose weights the rule would forget at their first step, because no [state](Step::implied_state) gives them. O(1), where
    /// there may be such weights O(values). A trainer asks before its first step.
    ///
    /// # Errors
    ///
    /// [`OptimizerError::NoState`], which names the parameter.
    pub fn check_weights<M: Model<Element = T>>(&self, model: &M) -> Result<()> {
        if R::GIVES_WEIGHTS.is_empty() {
            return Ok(());
        }
        for (record, parameter) in self.parameters.iter().zip(model.parameters()) {
            let group = &self.groups[record.group];
            let is_given = group.step.implied_state(T::Accumulator::one()).is_some();
            if is_given || record.spec.gradient.is_none() {
                continue;
            }
            if parameter.table.norms().n_rows_not_zero > 0 {
                return Err(OptimizerError::NoState {
                    parameter: record.spec.name.to_string(),
                    rule: R::NAME,
                    hyperparameters: R::GIVES_WEIGHTS,
                    decays: record.spec.weight_decay_scale > 0.0,
                }
                .into());
            }
        }
        Ok(())
    }
}
