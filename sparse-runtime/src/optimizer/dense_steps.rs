//! Parameters with dense gradients during several steps of one call.

use super::error::OptimizerError;
use super::memory::Weights;
use super::rows::{General, StateOf, StepOf, on_weight};
use super::updater::Updater;
use crate::error::Result;
use sparse_core::element::Float;
use sparse_core::storage::Storage;
use sparse_core::update_rules::{Step, UpdateRule};

/// A parameter with a dense gradient during steps that were [begun together](Updater::begin_steps): every element is updated
/// at each. Its states are the updater's, which lent them.
#[derive(Debug)]
pub struct DenseSteps<'a, R: UpdateRule, T: Float> {
    values: &'a mut [T],
    /// One a value, or none where the rule keeps none.
    states: Vec<StateOf<R, T>>,
    step: StepOf<R, T>,
}

impl<R: UpdateRule, T: Float> DenseSteps<'_, R, T> {
    /// The values as the steps so far left them.
    #[inline(always)]
    pub fn values(&self) -> &[T] {
        self.values
    }

    /// One step: every value by its gradient, which is then set to zero. O(values).
    #[inline(always)]
    pub fn update(&mut self, grad: &mut [T]) {
        if self.states.is_empty() {
            for (weight, grad) in self.values.iter_mut().zip(&*grad) {
                on_weight(weight, |weight| {
                    self.step.update(weight, &mut Default::default(), grad.widen());
                });
            }
        } else {
            let values = self.values.iter_mut().zip(&mut self.states);
            for ((weight, state), grad) in values.zip(&*grad) {
                on_weight(weight, |weight| self.step.update(weight, state, grad.widen()));
            }
        }
        grad.fill(T::zero());
    }
}

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Takes a parameter with a dense gradient out for the steps that were [begun together](Self::begin_steps), to be
    /// [put back](Self::put_dense) before they end. O(1).
    ///
    /// # Errors
    ///
    /// No such parameter, a frozen one, values of another length, or a gradient that was said to be row_sparse.
    #[inline]
    pub fn take_dense<'a>(
        &mut self,
        parameter: usize,
        values: &'a mut [T],
    ) -> Result<DenseSteps<'a, R, T>> {
        self.check(parameter, &Weights::Values(&mut *values))?;
        let spec = &self.parameters[parameter].spec;
        if spec.gradient == Some(Storage::RowSparse) {
            return Err(OptimizerError::GradientStorage { parameter: spec.name.to_string() }.into());
        }
        self.ready::<General>(parameter, &mut Weights::Values(&mut *values));
        let record = &mut self.parameters[parameter];
        let states = std::mem::take(&mut record.states);
        let step = self.groups[record.group].step;
        Ok(DenseSteps { values, states, step })
    }

    /// Puts a parameter back that was [taken out](Self::take_dense).
    #[inline]
    pub fn put_dense(&mut self, parameter: usize, steps: DenseSteps<'_, R, T>) {
        if let Some(record) = self.parameters.get_mut(parameter) {
            record.states = steps.states;
            record.finished = true;
        }
    }
}
