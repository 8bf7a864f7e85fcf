//! Checks of an updater against a model, and of its initial weights.

use super::error::OptimizerError;
use super::memory::Weights;
use super::updater::{Record, Updater};
use crate::error::Result;
use crate::in_library_by_rule;
use crate::model::{Model, ParameterRef};
use nnz_arrays::parameter_memory::{Owner, Table};
use nnz_optim::{Step, UpdateRule};
use num_traits::One;
use sparse_core::element::Float;

impl<A, S> Record<A, S> {
    /// False of a table while there is another one that the states and the missed steps are of. A
    /// table that took its place is as good.
    #[inline(always)]
    pub(super) fn may_be_of<T: Float>(&self, weights: &Weights<'_, T>) -> bool {
        match (&self.table, weights) {
            (Some(owner), Weights::Table(table)) => owner.is(table.identity()) || !owner.is_there(),
            _ => true,
        }
    }

    /// Notes that from now on states and missed steps are of this table, or of a copy.
    #[inline(always)]
    pub(super) fn belong_to<T: Float>(&mut self, table: &Table<T>) {
        let is_known = |owner: &Owner| owner.is(table.identity());
        if !self.table.as_ref().is_some_and(is_known) {
            self.table = Some(table.identity().as_owner());
        }
    }
}

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Refuses a model while there is another one whose states and missed steps this updater keeps:
    /// it is for one model, its clones, and what takes its place. O(parameters). A trainer asks
    /// before its first step, and [`flush_model`](Self::flush_model) does.
    ///
    /// # Errors
    ///
    /// [`OptimizerError::OtherTable`], which names the parameter; [`OptimizerError::OtherModel`]
    /// for other parameters.
    pub fn check_model<M: Model<Element = T>>(&mut self, model: &M) -> Result<()> {
        let (updater, name, parameters) = (self, M::NAME, model.parameters());
        in_library_by_rule!(<R, T> Updater::<R, T>::check_parameters => (
            updater: &mut Updater<R, T>,
            name: &'static str,
            parameters: Vec<ParameterRef<'_, T>>,
        ) -> Result<()>)
    }

    fn check_parameters(
        &mut self,
        model: &'static str,
        parameters: Vec<ParameterRef<'_, T>>,
    ) -> Result<()> {
        if parameters.len() != self.parameters.len() {
            return Err(OptimizerError::OtherModel { model }.into());
        }
        for (index, parameter) in parameters.iter().enumerate() {
            // A rule that keeps nothing of a parameter may go on with another.
            if self.parameters[index].spec.gradient.is_none() || self.is_plain(index) {
                continue;
            }
            let record = &mut self.parameters[index];
            let is_other =
                |owner: &Owner| !owner.is(parameter.table.identity()) && owner.is_there();
            if record.table.as_ref().is_some_and(is_other) {
                let parameter = record.spec.name.to_string();
                return Err(OptimizerError::OtherTable { parameter }.into());
            }
            record.belong_to(parameter.table);
        }
        Ok(())
    }

    /// Refuses a model some of whose weights the rule would forget at their first step, because no
    /// [state](Step::implied_state) gives them. O(1), where there may be such weights O(values). A
    /// trainer asks before its first step.
    ///
    /// # Errors
    ///
    /// [`OptimizerError::NoState`], which names the parameter.
    pub fn check_weights<M: Model<Element = T>>(&self, model: &M) -> Result<()> {
        if R::GIVES_WEIGHTS.is_empty() {
            return Ok(());
        }
        let (updater, parameters) = (self, model.parameters());
        in_library_by_rule!(<R, T> Updater::<R, T>::check_values => (
            updater: &Updater<R, T>,
            parameters: Vec<ParameterRef<'_, T>>,
        ) -> Result<()>)
    }

    fn check_values(&self, parameters: Vec<ParameterRef<'_, T>>) -> Result<()> {
        for (record, parameter) in self.parameters.iter().zip(parameters) {
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
