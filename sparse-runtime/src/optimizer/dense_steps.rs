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

/// [`DenseSteps`] of a parameter of `N` elements, few enough to be kept in registers: copies, written back when it is
/// [put back](Updater::put_few).
#[derive(Debug)]
pub struct FewSteps<R: UpdateRule, T: Float, const N: usize> {
    values: [T; N],
    states: [StateOf<R, T>; N],
    step: StepOf<R, T>,
}

impl<R: UpdateRule, T: Float, const N: usize> FewSteps<R, T, N> {
    /// The values as the steps so far left them.
    #[inline(always)]
    pub fn values(&self) -> &[T; N] {
        &self.values
    }

    /// One step: every value by its gradient, which is then set to zero. O(N).
    #[inline(always)]
    pub fn update(&mut self, grad: &mut [T; N]) {
        let values = self.values.iter_mut().zip(&mut self.states);
        for ((weight, state), grad) in values.zip(grad) {
            on_weight(weight, |weight| self.step.update(weight, state, grad.widen()));
            *grad = T::zero();
        }
    }
}

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// [`take_dense`](Self::take_dense) of a parameter of `N` elements.
    ///
    /// # Errors
    ///
    /// As [`take_dense`](Self::take_dense); another number of elements.
    #[inline]
    pub fn take_few<const N: usize>(
        &mut self,
        parameter: usize,
        values: &mut [T],
    ) -> Result<FewSteps<R, T, N>> {
        let steps = self.take_dense(parameter, values)?;
        let few = steps.values.first_chunk::<N>().map(|values| FewSteps {
            values: *values,
            states: steps.states.first_chunk().copied().unwrap_or([Default::default(); N]),
            step: steps.step,
        });
        self.put_dense(parameter, steps);
        match few {
            Some(few) if values.len() == N => Ok(few),
            _ => Err(self.wrong_count(parameter, N)),
        }
    }

    /// Puts a parameter back that was [taken out](Self::take_few).
    #[inline]
    pub fn put_few<const N: usize>(
        &mut self,
        parameter: usize,
        values: &mut [T],
        steps: &FewSteps<R, T, N>,
    ) {
        if let (Some(record), Some(values)) =
            (self.parameters.get_mut(parameter), values.first_chunk_mut())
        {
            *values = steps.values;
            if let Some(states) = record.states.first_chunk_mut() {
                *states = steps.states;
            }
            record.finished = true;
        }
    }

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
