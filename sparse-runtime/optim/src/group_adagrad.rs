//! Group AdaGrad: a rate for each row, by the squares of its gradients so far.

use super::gradient::Preparation;
use super::rule::update_rule;
use super::{Idle, MOST_NUMBERS, OfRow, Step};
use sparse_core::element::Float;

update_rule! {
    /// Group AdaGrad: one state for a row of weights.
    ///
    /// With `g` the gradient, `q = clip(rescale_grad · g)` to ±`clip_gradient`, and `h` a state of
    /// the row that starts at 0:
    ///
    /// ```text
    /// h ← h + the mean of q² over the row
    /// w ← w - learning_rate · q / √(h + epsilon)
    /// ```
    ///
    /// An idle step (`g = 0`) changes nothing. Of rows of one weight this is
    /// [`AdaGrad`](super::AdaGrad) without penalties; of an embedding it keeps one number a row.
    ///
    /// Source: `GroupAdaGrad` of MXNet; Duchi, Hazan and Singer, JMLR 12 (2011), with the rows as
    /// blocks.
    pub struct GroupAdaGrad = "group-adagrad" {
        /// Step size.
        learning_rate: f64 = 0.05, PositiveFinite;
        /// Keeps the first steps finite.
        epsilon: f64 = 1e-5, PositiveFinite;
    }
    step: GroupAdaGradStep;
    states: ["h"];
    numbers: |step| [learning_rate: step.learning_rate, epsilon: step.epsilon];
    gradient: CLIPPED;
    row: "q * q", [h = "h + mean"];
    recurrence: [
        w = "w - learning_rate * q / sqrt(h + epsilon)",
    ];
}

/// [`GroupAdaGrad`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupAdaGradStep<T> {
    learning_rate: T,
    epsilon: T,
    preparation: Preparation<T>,
}

impl<T: Float> GroupAdaGradStep<T> {
    pub(super) fn resolve(rule: &GroupAdaGrad, learning_rate: f64, _: f64, _: u64) -> Self {
        GroupAdaGradStep {
            learning_rate: T::of(learning_rate),
            epsilon: T::of(rule.epsilon),
            preparation: Preparation::new(rule.rescale_grad, rule.clip_gradient),
        }
    }
}

impl<T: Float> Step<T> for GroupAdaGradStep<T> {
    /// h.
    type State = OfRow<[T; 1]>;
    type Idle = ();

    #[inline(always)]
    fn row_term(&self, grad: T) -> T {
        let grad = self.preparation.apply(grad);
        grad * grad
    }

    #[inline(always)]
    fn begin_row(&self, state: &mut OfRow<[T; 1]>, mean: T) {
        state.0[0] += mean;
    }

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut OfRow<[T; 1]>, grad: T) {
        let grad = self.preparation.apply(grad);
        *weight -= self.learning_rate * grad / (state.0[0] + self.epsilon).sqrt();
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<()> {
        Idle::Nothing
    }

    fn apply_idle(&self, (): &(), _: &mut T, _: &mut OfRow<[T; 1]>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpdateRule;

    #[test]
    fn a_row_by_hand() {
        let rule = GroupAdaGrad { epsilon: 1.0, ..GroupAdaGrad::default() };
        let step = rule.step::<f64>(0.5, 1.0, 0);
        let (mut row, mut state) = ([2.0, -1.0], OfRow([1.0]));
        let grads = [2.0, 0.0];
        let mean = grads.iter().map(|grad| step.row_term(*grad)).sum::<f64>() / 2.0;
        step.begin_row(&mut state, mean);
        row.iter_mut().zip(grads).for_each(|(w, grad)| step.update(w, &mut state, grad));
        assert_eq!((row, state), ([2.0 - 0.5 * 2.0 / 2.0, -1.0], OfRow([3.0])));
    }
}
