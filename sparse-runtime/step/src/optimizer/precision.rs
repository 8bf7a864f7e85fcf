//! Detection of steps that are rounded away, and of states that are not finite.

use super::update_kind::{IdleOf, StateOf, StepOf, on_weight};
use super::updater::{Record, Updater};
use nnz_arrays::parameter_memory::Table;
use nnz_optim::{IdleMap, StateBlock, Step, UpdateRule};
use num_traits::Zero;
use sparse_core::element::Float;
use std::ops::AddAssign;

/// What an updater of rule `R` keeps for a parameter of type `T`.
type RecordOf<R, T> = Record<<T as Float>::Accumulator, StateOf<R, T>>;

/// Lost steps matter where all of them together would change a weight by this fraction of it.
const FRACTION: f64 = 0.01;

/// Counts of rows of a parameter by what the next step makes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Precision {
    /// The rows that move in `f64`.
    pub(crate) n_rows: usize,
    /// Those of them that do not move as they are stored, though all steps together matter.
    pub(crate) n_rounded_away: usize,
    /// The rows with a state that is not finite.
    pub(crate) n_not_finite: usize,
}

impl AddAssign for Precision {
    fn add_assign(&mut self, other: Precision) {
        self.n_rows += other.n_rows;
        self.n_rounded_away += other.n_rounded_away;
        self.n_not_finite += other.n_not_finite;
    }
}

impl Precision {
    /// The warning where most rows do not move, or states are not finite. `element` is the type of
    /// the weights.
    pub fn warning(&self, parameter: &str, element: &str) -> Option<String> {
        let Precision { n_rows, n_rounded_away, n_not_finite } = self;
        if *n_not_finite > 0 {
            return Some(format!(
                "parameter `{parameter}`: optimizer states are not finite, in {n_not_finite} of the \
                 rows of one batch, and their weights will not recover: lower the learning rate, or \
                 clip gradients (docs/numbers.md)"
            ));
        }
        (2 * n_rounded_away > *n_rows).then(|| {
            format!(
                "parameter `{parameter}` mostly does not move: the steps of {n_rounded_away} of {n_rows} \
                 rows of one batch are rounded away, because they are less than half a unit in the \
                 last place of weights of `{element}`: train in a wider type, or by a larger learning \
                 rate (docs/numbers.md)"
            )
        })
    }
}

/// A row with its states, apart from its table: room for one after the other.
struct RowCopy<T, S> {
    weights: Vec<T>,
    states: Vec<S>,
}

/// The steps that a row has missed, from one up to another, and what they do together.
struct MissedSteps<M> {
    steps: (u64, u64),
    map: M,
}

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Copies a row as the next step will find it: the steps that it waits for are made on the
    /// copy, which is only written where it differs.
    ///
    /// # Panics
    ///
    /// If the table has no such row, or rows of another size than `to`.
    pub fn copy_settled(&self, parameter: usize, table: &Table<T>, row: usize, to: &mut [T]) {
        let waits = self.parameters.get(parameter).is_some_and(|record| {
            let (_, last) = self.states_of_row(record, table, row);
            self.missed_steps(record, last, row).is_some()
        });
        let mut copy = RowCopy { weights: Vec::new(), states: Vec::new() };
        let mut from = table.row(row);
        if waits {
            self.settle_copy(parameter, table, row, &mut copy);
            from = &copy.weights;
        }
        if to != from {
            to.copy_from_slice(from);
        }
    }

    /// The states of a row, and where it lies beside them the step up to which it is settled.
    fn states_of_row<'t>(
        &'t self,
        record: &'t RecordOf<R, T>,
        table: &'t Table<T>,
        row: usize,
    ) -> (&'t [StateOf<R, T>], Option<u32>) {
        if record.beside {
            return table.row_of(&self.tenant, row).unwrap_or((&[], None));
        }
        let n_states = record.states_of_row();
        (record.states.get(row * n_states..(row + 1) * n_states).unwrap_or(&[]), None)
    }

    /// The steps that a row has missed, where they change it; `last` as it lies beside its states.
    fn missed_steps(
        &self,
        record: &RecordOf<R, T>,
        last: Option<u32>,
        row: usize,
    ) -> Option<MissedSteps<IdleOf<R, T>>> {
        let group = &self.groups[record.group];
        if !record.lazy || !group.settles_since(record.base) {
            return None;
        }
        let last = last.or_else(|| record.last.get(row).copied()).filter(|_| record.counts);
        let settled = record.base + u64::from(last.unwrap_or(0).saturating_sub(1));
        let steps = (settled.min(self.clock), self.clock);
        let map = group.history.between(steps.0, steps.1);
        (map != IdleOf::<R, T>::IDENTITY).then_some(MissedSteps { steps, map })
    }

    fn settle_copy(
        &self,
        parameter: usize,
        table: &Table<T>,
        row: usize,
        copy: &mut RowCopy<T, StateOf<R, T>>,
    ) {
        copy.weights.clear();
        copy.weights.extend_from_slice(table.row(row));
        copy.states.clear();
        let Some(record) = self.parameters.get(parameter) else { return };
        let (states, last) = self.states_of_row(record, table, row);
        copy.states.extend_from_slice(states);
        let Some(MissedSteps { steps, map }) = self.missed_steps(record, last, row) else { return };
        let group = &self.groups[record.group];
        let mut none = StateOf::<R, T>::default();
        for (column, weight) in copy.weights.iter_mut().enumerate() {
            let state = copy.states.get_mut(column).unwrap_or(&mut none);
            on_weight(weight, |weight| {
                if !group.step.try_idle(&map, weight, state) {
                    group.step.idle_in_pieces(&group.history, steps, weight, state);
                }
            });
        }
    }

    /// Makes the next step of some rows of a parameter on copies: once as in training, and once in
    /// `f64`. `gradients` are row major, one row for each of `rows`; `n_steps` is the number of
    /// steps over which a lost one adds up. Only states are checked for rules
    /// [by norms](Step::BY_NORMS), and for those whose states
    /// [give the weights](UpdateRule::GIVES_WEIGHTS): their rounding does not add up.
    pub fn precision(
        &self,
        parameter: usize,
        table: &Table<T>,
        (rows, gradients): (&[usize], &[T]),
        n_steps: u64,
    ) -> Precision {
        let mut found = Precision::default();
        let Some(record) = self.parameters.get(parameter) else { return found };
        let row_size = record.spec.row_size;
        if row_size == 0 || table.row_size() != row_size {
            return found;
        }
        let adds_up = !StepOf::<R, T>::BY_NORMS && R::GIVES_WEIGHTS.is_empty();
        let n_states = record.states_of_row();
        let (rate, decay) = self.groups[record.group].scales();
        let rate = self.learning_rate * rate;
        let step = self.rule.step::<T::Accumulator>(rate, decay, self.clock);
        let exact = self.rule.step::<f64>(rate, decay, self.clock);
        let mut copy = RowCopy { weights: Vec::new(), states: Vec::new() };
        for (row, gradients) in rows.iter().zip(gradients.chunks_exact(row_size)) {
            self.settle_copy(parameter, table, *row, &mut copy);
            let is_finite =
                |state: &StateOf<R, T>| state.values().all(|value| value.as_f64().is_finite());
            found.n_not_finite += usize::from(!copy.states.iter().all(is_finite));
            if !adds_up {
                continue;
            }
            let terms = gradients.iter().map(|grad| step.row_term(grad.widen()));
            let mean = terms.sum::<T::Accumulator>() / T::Accumulator::of(row_size as f64);
            let (mut moves, mut stays, mut matters) = (false, true, false);
            for (column, (weight, grad)) in copy.weights.iter().zip(gradients).enumerate() {
                let grad = grad.widen();
                if grad.is_zero() {
                    continue;
                }
                let place = if n_states < row_size { 0 } else { column };
                let mut state = copy.states.get(place).copied().unwrap_or_default();
                let mut exact_state = <<R::Step<f64> as Step<f64>>::State as Default>::default();
                for (to, from) in exact_state.values_mut().zip(state.values()) {
                    *to = from.as_f64();
                }
                step.begin_row(&mut state, mean);
                exact.begin_row(&mut exact_state, mean.as_f64());
                let (mut moved, mut exactly) = (weight.widen(), weight.as_f64());
                step.update(&mut moved, &mut state, grad);
                exact.update(&mut exactly, &mut exact_state, grad.as_f64());
                let change = (exactly - weight.as_f64()).abs();
                moves |= change > 0.0;
                stays &= T::narrow(moved) == *weight;
                matters |= change * n_steps as f64 >= FRACTION * weight.as_f64().abs();
            }
            found.n_rows += usize::from(moves);
            found.n_rounded_away += usize::from(moves && stays && matters);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::ParameterSpec;
    use nnz_optim::{AdaGrad, Adam, Sgd};
    use sparse_core::element::Stored;
    use sparse_core::storage::Storage;

    fn found<R: UpdateRule>(rule: R, weights: &[f32], gradient: f32, n_steps: u64) -> Precision {
        let spec = ParameterSpec::new("w", weights.len(), 1, Some(Storage::RowSparse));
        let updater = Updater::<R, f32>::new(rule, vec![spec]).unwrap();
        let rows = Vec::from_iter(0..weights.len());
        let gradients = vec![gradient; weights.len()];
        updater.precision(0, &Table::from_values(1, weights), (&rows, &gradients), n_steps)
    }

    #[test]
    fn n13_steps_below_half_a_unit_in_the_last_place_are_counted() {
        let sgd = |learning_rate| Sgd { learning_rate, ..Sgd::default() };
        let weights = [1.0, -1.0, 0.0, 1e-9];
        let counts = |found: Precision| (found.n_rows, found.n_rounded_away);
        assert_eq!(counts(found(sgd(1e-3), &weights, 1.0, 10_000_000)), (4, 0));
        // Half a unit in the last place of 1 is 6e-8 above it, and 3e-8 below.
        let lost = found(sgd(1e-8), &weights, 1.0, 10_000_000);
        assert_eq!(counts(lost), (4, 2));
        assert_eq!(lost.warning("w", "f32"), None);
        let mostly = found(sgd(1e-8), &weights[..3], 1.0, 10_000_000);
        let text = mostly.warning("w", "f32").unwrap();
        assert!(
            text.starts_with("parameter `w` mostly does not move: the steps of 2 of 3"),
            "{text}"
        );
        // Steps that come to nothing are not missed.
        assert_eq!(counts(found(sgd(1e-8), &weights, 1.0, 1000)), (4, 0));
        assert_eq!(counts(found(sgd(1e-3), &weights, 0.0, 1000)), (0, 0));
        let sum = AdaGrad { learning_rate: 1e-3, ..AdaGrad::default() };
        assert_eq!(counts(found(sum, &weights, 1.0, 1000)), (4, 0));
    }

    #[test]
    fn n13_states_that_are_not_finite_are_counted() {
        let spec = ParameterSpec::new("w", 2, 1, Some(Storage::RowSparse));
        let mut updater = Updater::<AdaGrad, f32>::new(AdaGrad::default(), vec![spec]).unwrap();
        let mut w = [1.0, 1.0];
        updater.begin_step().unwrap();
        let mut rows = updater.rows(0, &mut w).unwrap();
        rows.update(1, 0, 1e30);
        rows.finish();
        updater.end_step().unwrap();
        let table = Table::from_values(1, &w);
        let found = updater.precision(0, &table, (&[0, 1], &[1.0, 1.0]), 1);
        assert_eq!(found.n_not_finite, 1);
        let text = found.warning("w", <f32 as Stored>::TYPE.name()).unwrap();
        assert!(text.contains("states are not finite, in 1 of the rows"), "{text}");
    }

    /// Copies of rows that wait for steps are those that a flush makes, wherever states lie.
    #[test]
    fn n13_rows_that_wait_are_checked_as_the_next_step_finds_them() -> crate::Result<()> {
        fn settles<R: UpdateRule>(rule: R, beside: bool) -> crate::Result<()> {
            const N_ROWS: usize = 8;
            let spec = ParameterSpec::new("w", N_ROWS, 2, Some(Storage::RowSparse));
            let mut updater = Updater::<R, f32>::new(rule, vec![spec])?;
            let mut table = Table::from_values(2, &[1.0; 2 * N_ROWS]);
            for t in 0..50 {
                updater.begin_step()?;
                if beside {
                    crate::with_rows!(R, f32; updater, [0 => &mut table], |[rows]| {
                        rows.settle(t * t % 5);
                        rows.update_row(t * t % 5, &[1.0, -0.5]);
                        rows.finish();
                    });
                } else {
                    let mut rows = updater.rows(0, table.values_mut())?;
                    rows.settle(t * t % 5);
                    rows.update_row(t * t % 5, &[1.0, -0.5]);
                    rows.finish();
                }
                updater.end_step()?;
            }
            let copies = (0..N_ROWS).map(|row| {
                let mut copy = [0.0; 2];
                updater.copy_settled(0, &table, row, &mut copy);
                copy
            });
            let copies = Vec::from_iter(copies).concat();
            let before = table.values().to_vec();
            updater.flush(0, &mut table)?;
            assert_eq!(copies, table.values());
            assert_ne!(copies, before);
            Ok(())
        }
        for beside in [false, true] {
            settles(Sgd { weight_decay: 0.1, ..Sgd::default() }, beside)?;
            settles(Sgd { weight_decay: 0.1, momentum: 0.9, ..Sgd::default() }, beside)?;
            settles(Adam::default(), beside)?;
        }
        Ok(())
    }
}
