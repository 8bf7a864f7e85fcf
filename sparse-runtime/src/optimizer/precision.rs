//! Steps that are rounded away, and states that are not finite.

use super::rows::{StateOf, StepOf};
use super::updater::Updater;
use crate::table::Table;
use num_traits::Zero;
use sparse_core::element::Float;
use sparse_core::update_rules::{StateBlock, Step, UpdateRule};

/// Lost steps matter where all of them together would change a weight by this fraction of it.
const FRACTION: f64 = 0.01;

/// Counts of rows of a parameter by what the next step makes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Precision {
    /// The rows that move in `f64`.
    pub(crate) n_rows: usize,
    /// Those of them that do not move as they are stored, though all steps together matter.
    pub(crate) n_rounded_away: usize,
    /// The rows with a state that is not finite.
    pub(crate) n_not_finite: usize,
}

impl Precision {
    /// The warning where most rows do not move, or states are not finite. `element` is the type of
    /// the weights.
    pub(crate) fn warning(&self, parameter: &str, element: &str) -> Option<String> {
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

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Makes the next step of some rows of a parameter on copies: once as in training, and once in
    /// `f64`. `gradients` are row major, one row for each of `rows`; `n_steps` is the number of
    /// steps over which a lost one adds up. Only states are checked for rules
    /// [by norms](Step::BY_NORMS), and for those whose states
    /// [give the weights](UpdateRule::GIVES_WEIGHTS): their rounding does not add up.
    pub(crate) fn precision(
        &self,
        parameter: usize,
        table: &Table<T>,
        (rows, gradients): (&[usize], &[T]),
        n_steps: u64,
    ) -> Precision {
        let mut found = Precision::default();
        let Some(record) = self.parameters.get(parameter) else { return found };
        let row_size = record.spec.row_size;
        if row_size == 0 {
            return found;
        }
        let adds_up = !StepOf::<R, T>::BY_NORMS && R::GIVES_WEIGHTS.is_empty();
        let group = &self.groups[record.group];
        let exact = self.exact_step(record.group);
        let n_states = record.states_of_row();
        for (row, gradients) in rows.iter().zip(gradients.chunks_exact(row_size)) {
            let states: &[StateOf<R, T>] = if record.beside {
                table.states_of_row(&self.tenant, *row).unwrap_or(&[])
            } else {
                record.states.get(row * n_states..(row + 1) * n_states).unwrap_or(&[])
            };
            let is_finite =
                |state: &StateOf<R, T>| state.values().all(|value| value.as_f64().is_finite());
            found.n_not_finite += usize::from(!states.iter().all(is_finite));
            if !adds_up {
                continue;
            }
            let (mut moves, mut stays) = (false, true);
            let terms = gradients.iter().map(|grad| group.step.row_term(grad.widen()));
            let mean = terms.sum::<T::Accumulator>() / T::Accumulator::of(row_size as f64);
            for (column, (weight, grad)) in table.row(*row).iter().zip(gradients).enumerate() {
                let grad = grad.widen();
                if grad.is_zero() {
                    continue;
                }
                let place = if n_states < row_size { 0 } else { column };
                let mut state = states.get(place).copied().unwrap_or_default();
                let mut exact_state = <<R::Step<f64> as Step<f64>>::State as Default>::default();
                for (to, from) in exact_state.values_mut().zip(state.values()) {
                    *to = from.as_f64();
                }
                group.step.begin_row(&mut state, mean);
                exact.begin_row(&mut exact_state, mean.as_f64());
                let (mut moved, mut exactly) = (weight.widen(), weight.as_f64());
                group.step.update(&mut moved, &mut state, grad);
                exact.update(&mut exactly, &mut exact_state, grad.as_f64());
                let step = (exactly - weight.as_f64()).abs();
                let matters = step * n_steps as f64 >= FRACTION * weight.as_f64().abs();
                moves |= step > 0.0;
                stays &= T::narrow(moved) == *weight && (matters || step == 0.0);
            }
            found.n_rows += usize::from(moves);
            found.n_rounded_away += usize::from(moves && stays);
        }
        found
    }

    /// The next step of a group, in `f64`.
    fn exact_step(&self, group: usize) -> R::Step<f64> {
        let (rate, decay) = self.groups[group].scales();
        self.rule.step::<f64>(self.learning_rate * rate, decay, self.clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::ParameterSpec;
    use sparse_core::element::Stored;
    use sparse_core::storage::Storage;
    use sparse_core::update_rules::{AdaGrad, Sgd};

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
}
