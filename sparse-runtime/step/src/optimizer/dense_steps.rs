//! Dense-gradient parameters during several steps of one call.

use super::cursor::by_row;
use super::error::OptimizerError;
use super::memory::Weights;
use super::norms::end_by_norms;
use super::update_kind::{General, StateOf, StepOf, on_weight};
use super::updater::Updater;
use crate::error::Result;
use crate::in_library_by_rule;
use nnz_device::simd;
use nnz_optim::{StateBlock, Step, UpdateRule};
use sparse_core::element::Float;
use sparse_core::storage::Storage;

/// A parameter with a dense gradient during steps that were [begun together](Updater::begin_steps):
/// every element is updated at each. Its states are the updater's, which lent them.
#[derive(Debug)]
pub struct DenseSteps<'a, R: UpdateRule, T: Float> {
    parameter: usize,
    values: &'a mut [T],
    /// One a value or a row, or none where the rule keeps none.
    states: Vec<StateOf<R, T>>,
    step: StepOf<R, T>,
    row_size: usize,
}

impl<R: UpdateRule, T: Float> DenseSteps<'_, R, T> {
    /// The values as the steps so far left them.
    #[inline(always)]
    pub fn values(&self) -> &[T] {
        self.values
    }

    /// One step: every value by its gradient, which is then set to -0, for sums to begin at.
    /// O(values).
    #[inline(always)]
    pub fn update(&mut self, grad: &mut [T]) {
        update_all(&self.step, self.values, &mut self.states, grad, self.row_size);
        grad.fill(-T::zero());
    }
}

/// [`DenseSteps`] of a parameter of `N` elements, few enough to be kept in registers: copies,
/// written back when it is [put back](Updater::put_few).
#[derive(Debug)]
pub struct FewSteps<R: UpdateRule, T: Float, const N: usize> {
    values: [T; N],
    /// One a value, or the first of them one a row.
    states: [StateOf<R, T>; N],
    step: StepOf<R, T>,
    row_size: usize,
}

impl<R: UpdateRule, T: Float, const N: usize> Clone for FewSteps<R, T, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: UpdateRule, T: Float, const N: usize> Copy for FewSteps<R, T, N> {}

impl<R: UpdateRule, T: Float, const N: usize> FewSteps<R, T, N> {
    /// The values as the steps so far left them.
    #[inline(always)]
    pub fn values(&self) -> &[T; N] {
        &self.values
    }

    /// One step: every value by its gradient. O(N).
    #[inline(always)]
    pub fn update(&mut self, grad: &[T; N]) {
        let by_row = const { <StateOf<R, T> as StateBlock<T::Accumulator>>::BY_ROW };
        if by_row || const { <StepOf<R, T> as Step<T::Accumulator>>::BY_NORMS } {
            update_all(&self.step, &mut self.values, &mut self.states, grad, self.row_size);
            return;
        }
        for (place, grad) in grad.iter().enumerate() {
            let state = &mut self.states[place];
            on_weight(&mut self.values[place], |weight| {
                self.step.update(weight, state, grad.widen());
            });
        }
    }
}

/// The states of a parameter with a dense gradient during steps that were
/// [begun together](Updater::begin_steps). The values stay with their owner.
#[derive(Debug)]
pub(crate) struct DenseStates<R: UpdateRule, T: Float> {
    parameter: usize,
    /// One a value or a row, or none where the rule keeps none.
    states: Vec<StateOf<R, T>>,
    step: StepOf<R, T>,
    /// Of a rule that only adds, what it multiplies gradients with.
    factor: Option<T::Accumulator>,
    row_size: usize,
}

impl<R: UpdateRule, T: Float<Accumulator = T>> DenseStates<R, T> {
    /// One step: every value by its gradient. O(values).
    #[inline(always)]
    pub(crate) fn update(&mut self, values: &mut [T], grad: &[T]) {
        let by_row = <StateOf<R, T> as StateBlock<T>>::BY_ROW;
        if let ([value], [grad]) = (&mut *values, grad)
            && !by_row
            && !StepOf::<R, T>::BY_NORMS
        {
            // A bias, of which a call would cost more than the update.
            match (self.factor, self.states.first_mut()) {
                (Some(factor), _) => *value += factor * *grad,
                (None, Some(state)) => self.step.update(value, state, *grad),
                (None, None) => self.step.update(value, &mut Default::default(), *grad),
            }
            return;
        }
        self.update_many(values, grad);
    }

    #[inline(never)]
    fn update_many(&mut self, values: &mut [T], grad: &[T]) {
        if let Some(factor) = self.factor {
            return simd::wide(
                #[inline(always)]
                || add_all(factor, values, grad),
            );
        }
        let by_row = <StateOf<R, T> as StateBlock<T>>::BY_ROW;
        let row_size = if by_row { self.row_size } else { grad.len() }.max(1);
        let gradient = |place| &grad[place * row_size..][..row_size];
        self.update_rows(values, row_size, gradient, |_| T::one());
    }

    /// One step of a matrix with a gradient that is not made: the products of all elements of
    /// `left` with all of `right`. O(values).
    pub(crate) fn update_outer(&mut self, values: &mut [T], left: &[T], right: &[T]) {
        let columns = right.len().max(1);
        if let Some(factor) = self.factor {
            return simd::wide(
                #[inline(always)]
                || {
                    for (row, left) in values.chunks_exact_mut(columns).zip(left) {
                        add_scaled(row, *left, right, factor);
                    }
                },
            );
        }
        self.update_rows(values, columns, |_| right, |place| left[place]);
    }

    /// The update of each row by its factor times its gradient.
    #[inline(always)]
    fn update_rows<'g>(
        &mut self,
        values: &mut [T],
        row_size: usize,
        gradient: impl Fn(usize) -> &'g [T],
        factor: impl Fn(usize) -> T,
    ) where
        T: 'g,
    {
        // The rule's options are tested once a step, not for every element.
        let step = self.step.without_options();
        simd::wide(
            #[inline(always)]
            || match &step {
                Some(step) if StepOf::<R, T>::HAS_OPTIONS => {
                    rows_by(step, values, &mut self.states, row_size, &gradient, &factor)
                }
                _ => rows_by(&self.step, values, &mut self.states, row_size, &gradient, &factor),
            },
        );
        end(&self.step, values, &self.states);
    }
}

/// Adds `left · (right · factor)` to a row.
#[inline(always)]
fn add_scaled<T: Float<Accumulator = T>>(row: &mut [T], left: T, right: &[T], factor: T) {
    let (weights, weights_rest) = row.as_chunks_mut::<8>();
    let (gradients, gradients_rest) = right.as_chunks::<8>();
    for (weights, right) in weights.iter_mut().zip(gradients) {
        // No other pointer leads to this copy, so that the compiler makes vectors of it.
        let mut new_weights = *weights;
        for (weight, right) in new_weights.iter_mut().zip(right) {
            *weight += left * (*right * factor);
        }
        *weights = new_weights;
    }
    for (weight, right) in weights_rest.iter_mut().zip(gradients_rest) {
        *weight += left * (*right * factor);
    }
}

/// The updates of rows by their factors times their gradients.
#[inline(always)]
fn rows_by<'g, T: Float<Accumulator = T> + 'g, S: Step<T>>(
    step: &S,
    values: &mut [T],
    states: &mut [S::State],
    row_size: usize,
    gradient: &impl Fn(usize) -> &'g [T],
    factor: &impl Fn(usize) -> T,
) {
    for (place, row) in values.chunks_exact_mut(row_size).enumerate() {
        let (gradient, factor) = (gradient(place), factor(place));
        if S::State::BY_ROW {
            if let Some(state) = states.get_mut(place) {
                by_row(step, row, state, gradient, |gradient, _| factor * gradient);
            }
            continue;
        }
        // There are none where the rule keeps none.
        let states = states.get_mut(place * row_size..(place + 1) * row_size);
        let Some(states) = states else {
            for (weight, gradient) in row.iter_mut().zip(gradient) {
                step.update(weight, &mut Default::default(), factor * *gradient);
            }
            continue;
        };
        let (weights, weights_rest) = row.as_chunks_mut::<8>();
        let (states, states_rest) = states.as_chunks_mut::<8>();
        let (gradients, gradients_rest) = gradient.as_chunks::<8>();
        for ((weights, states), gradients) in weights.iter_mut().zip(states).zip(gradients) {
            // No other pointer leads to these copies, so that the compiler makes vectors of them.
            let (mut new_weights, mut new_states, gradients) = (*weights, *states, *gradients);
            let elements = new_weights.iter_mut().zip(&mut new_states);
            for ((weight, state), gradient) in elements.zip(gradients) {
                step.update(weight, state, factor * gradient);
            }
            (*weights, *states) = (new_weights, new_states);
        }
        let rest = weights_rest.iter_mut().zip(states_rest).zip(gradients_rest);
        for ((weight, state), gradient) in rest {
            step.update(weight, state, factor * *gradient);
        }
    }
}

/// One step of all rows of a parameter, with a gradient of as many elements. O(values).
#[inline(always)]
pub(super) fn update_all<T: Float, S: Step<T::Accumulator>>(
    step: &S,
    values: &mut [T],
    states: &mut [S::State],
    grad: &[T],
    row_size: usize,
) {
    update_some(step, values, states, grad, row_size);
    end(step, values, states);
}

/// What a step ends with that depends on all weights of a parameter.
#[inline(always)]
fn end<T: Float, S: Step<T::Accumulator>>(step: &S, values: &mut [T], states: &[S::State]) {
    end_by_norms(step, |visit| {
        values.iter_mut().zip(states).for_each(|(weight, state)| visit(weight, state));
    });
}

/// The updates of some rows. O(values).
#[inline(always)]
fn update_some<T: Float, S: Step<T::Accumulator>>(
    step: &S,
    values: &mut [T],
    states: &mut [S::State],
    grad: &[T],
    row_size: usize,
) {
    if S::State::BY_ROW {
        let rows = values.chunks_exact_mut(row_size.max(1)).zip(grad.chunks_exact(row_size.max(1)));
        for ((row, grad), state) in rows.zip(states) {
            by_row(step, row, state, grad, |grad, _| grad.widen());
        }
    } else if states.is_empty() {
        for (weight, grad) in values.iter_mut().zip(grad) {
            on_weight(weight, |weight| step.update(weight, &mut Default::default(), grad.widen()));
        }
    } else {
        for ((weight, state), grad) in values.iter_mut().zip(states).zip(grad) {
            on_weight(weight, |weight| step.update(weight, state, grad.widen()));
        }
    }
}

/// The same of a rule that only adds: `weight += factor · grad`. O(values).
#[inline(always)]
pub(super) fn add_all<T: Float>(factor: T::Accumulator, values: &mut [T], grad: &[T]) {
    for (weight, grad) in values.iter_mut().zip(grad) {
        on_weight(weight, |weight| *weight += factor * grad.widen());
    }
}

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Takes out `count` sums of the gradient of a dense parameter over the rows of a batch, to be
    /// [put back](Self::put_sums): all are -0, to which adding is no work where the compiler sees
    /// it. O(count); allocates where a parameter's sums are more than before.
    #[inline]
    pub fn take_sums(&mut self, parameter: usize, count: usize) -> Vec<f64> {
        let record = self.parameters.get_mut(parameter);
        let mut sums =
            record.map(|record| std::mem::take(&mut record.dense_sums)).unwrap_or_default();
        sums.clear();
        sums.resize(count, -0.0);
        sums
    }

    /// Puts sums back that were [taken out](Self::take_sums), rounded into a gradient. O(sums).
    #[inline]
    pub fn put_sums(&mut self, parameter: usize, sums: Vec<f64>, gradient: &mut [T]) {
        gradient.iter_mut().zip(&sums).for_each(|(gradient, sum)| *gradient = T::of(*sum));
        if let Some(record) = self.parameters.get_mut(parameter) {
            record.dense_sums = sums;
        }
    }

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
        let mut states = [StateOf::<R, T>::default(); N];
        let n_states = steps.states.len().min(N);
        states[..n_states].copy_from_slice(&steps.states[..n_states]);
        let few = steps.values.first_chunk::<N>().map(|values| FewSteps {
            values: *values,
            states,
            step: steps.step,
            row_size: steps.row_size,
        });
        self.put_dense(parameter, steps)?;
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
            let n_states = record.states.len().min(N);
            record.states[..n_states].copy_from_slice(&steps.states[..n_states]);
            record.finished = true;
        }
    }

    /// The states of a parameter, like [`take_dense`](Self::take_dense).
    ///
    /// # Errors
    ///
    /// As [`take_dense`](Self::take_dense).
    pub(crate) fn take_states(
        &mut self,
        parameter: usize,
        values: &mut [T],
    ) -> Result<DenseStates<R, T>> {
        let DenseSteps { states, step, row_size, .. } = self.take_dense(parameter, values)?;
        let factor = step.gradient_factor().filter(|_| self.is_plain(parameter));
        Ok(DenseStates { parameter, states, step, factor, row_size })
    }

    /// Puts states back that were [taken out](Self::take_states).
    ///
    /// # Errors
    ///
    /// As [`put_dense`](Self::put_dense).
    pub(crate) fn put_states(&mut self, parameter: usize, steps: DenseStates<R, T>) -> Result<()> {
        let DenseStates { parameter: taken, states, step, row_size, .. } = steps;
        let values = &mut [];
        self.put_dense(parameter, DenseSteps { parameter: taken, values, states, step, row_size })
    }

    /// Takes a parameter with a dense gradient out for the steps that were
    /// [begun together](Self::begin_steps), to be [put back](Self::put_dense) before they end.
    /// O(1).
    ///
    /// # Errors
    ///
    /// No such parameter, a frozen one, values of another length, or a gradient that was said to be
    /// row_sparse; [`OptimizerError::OutsideStep`] between two steps.
    #[inline]
    pub fn take_dense<'a>(
        &mut self,
        parameter: usize,
        values: &'a mut [T],
    ) -> Result<DenseSteps<'a, R, T>> {
        let updater = self;
        in_library_by_rule!(<R, T> Updater::<R, T>::take_values => <'v>(
            updater: &mut Updater<R, T>,
            parameter: usize,
            values: &'v mut [T],
        ) -> Result<DenseSteps<'v, R, T>>)
    }

    fn take_values<'a>(
        &mut self,
        parameter: usize,
        values: &'a mut [T],
    ) -> Result<DenseSteps<'a, R, T>> {
        self.check(parameter, &Weights::Values(&mut *values))?;
        let spec = &self.parameters[parameter].spec;
        if spec.gradient == Some(Storage::RowSparse) {
            return Err(OptimizerError::GradientStorage { parameter: spec.name.to_string() }.into());
        }
        self.check_begun(parameter)?;
        self.ready::<General>(parameter, &mut Weights::Values(&mut *values));
        let record = &mut self.parameters[parameter];
        let states = std::mem::take(&mut record.states);
        let (step, row_size) = (self.groups[record.group].step, record.spec.row_size);
        Ok(DenseSteps { parameter, values, states, step, row_size })
    }

    /// Puts a parameter back that was [taken out](Self::take_dense).
    ///
    /// # Errors
    ///
    /// No such parameter; [`OptimizerError::OtherSteps`] for what was taken out of another
    /// parameter, or of another updater with other states.
    #[inline]
    pub fn put_dense(&mut self, parameter: usize, steps: DenseSteps<'_, R, T>) -> Result<()> {
        let Some(record) = self.parameters.get_mut(parameter) else {
            return Err(self.other_steps(parameter, &steps));
        };
        let n_states = record.spec.n_rows * record.states_of_row();
        // Loops without checks rely on a state for each weight or row, or none.
        if steps.parameter != parameter || ![0, n_states].contains(&steps.states.len()) {
            return Err(self.other_steps(parameter, &steps));
        }
        record.states = steps.states;
        record.finished = true;
        Ok(())
    }

    #[cold]
    fn other_steps(&self, parameter: usize, steps: &DenseSteps<'_, R, T>) -> crate::Error {
        match self.record(parameter) {
            Ok(record) => OptimizerError::OtherSteps {
                parameter: record.spec.name.to_string(),
                expected: record.spec.n_rows * record.states_of_row(),
                taken: steps.parameter,
                found: steps.states.len(),
            }
            .into(),
            Err(error) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::ParameterSpec;
    use nnz_optim::{AdaGrad, GroupAdaGrad, Sgd};

    fn updater<R: UpdateRule>(rule: &R) -> Updater<R, f64> {
        let spec = ParameterSpec::new("h", 3, 2, Some(Storage::Dense));
        Updater::new(rule.clone(), vec![spec]).unwrap()
    }

    /// Steps by the gradients that are not made, against the same made.
    fn agree<R: UpdateRule>(rule: &R) {
        let (mut a, mut b) = (updater(rule), updater(rule));
        let mut found = [0.5, -0.25, 1.0, 0.0, -1.0, 2.0];
        let mut expected = found;
        for step in 0..4u8 {
            let (left, right) = ([1.0, -0.5, f64::from(step)], [0.25, 2.0 - f64::from(step)]);
            let mut grad = [0.0; 6];
            for (place, grad) in grad.iter_mut().enumerate() {
                *grad = left[place / 2] * right[place % 2];
            }
            a.begin_steps(1).unwrap();
            let mut steps = a.take_states(0, &mut found).unwrap();
            match step % 2 {
                0 => steps.update_outer(&mut found, &left, &right),
                _ => steps.update(&mut found, &grad),
            }
            a.put_states(0, steps).unwrap();
            a.end_steps(1).unwrap();
            b.begin_step().unwrap();
            b.apply_dense(0, &mut expected, &grad).unwrap();
            b.end_step().unwrap();
        }
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{rule:?}: {found} {expected}");
        }
    }

    #[test]
    fn outer_products_are_gradients() {
        agree(&Sgd { learning_rate: 0.1, ..Sgd::default() });
        agree(&Sgd { learning_rate: 0.1, momentum: 0.9, weight_decay: 0.1, ..Sgd::default() });
        agree(&Sgd { learning_rate: 0.1, clip_gradient: Some(0.3), ..Sgd::default() });
        agree(&AdaGrad::default());
        agree(&GroupAdaGrad::default());
    }

    #[test]
    fn steps_are_not_put_back_to_another_parameter() {
        let specs = [("h", 3), ("k", 5)];
        let specs =
            specs.map(|(name, rows)| ParameterSpec::new(name, rows, 2, Some(Storage::Dense)));
        let mut updater = Updater::<_, f64>::new(AdaGrad::default(), specs).unwrap();
        let (mut h, mut k) = ([0.5; 6], [0.5; 10]);
        updater.begin_steps(1).unwrap();
        let of_h = updater.take_dense(0, &mut h).unwrap();
        let of_k = updater.take_dense(1, &mut k).unwrap();
        let error = updater.put_dense(1, of_h).unwrap_err().to_string();
        assert!(error.contains("parameter 0, with 6 states") && error.contains("`k`"), "{error}");
        assert!(updater.put_dense(2, of_k).is_err());
        // Of another updater the states are not as many.
        let mut other = self::updater(&AdaGrad::default());
        let mut other_h = [0.5; 6];
        other.begin_steps(1).unwrap();
        let spec = ParameterSpec::new("w", 1, 1, Some(Storage::Dense));
        let mut small = Updater::<_, f64>::new(AdaGrad::default(), vec![spec]).unwrap();
        let of_other = other.take_dense(0, &mut other_h).unwrap();
        assert!(small.put_dense(0, of_other).is_err());
    }
}
