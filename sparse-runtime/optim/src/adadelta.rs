//! AdaDelta: steps in the units of the weights.

use super::gradient::Preparation;
use super::rule::update_rule;
use super::{Idle, MOST_NUMBERS, ScaleMap, Step};
use sparse_core::element::Float;

update_rule! {
    /// AdaDelta.
    ///
    /// With `g` the gradient, `q = clip(rescale_grad · g)` to ±`clip_gradient`, and states `a` and
    /// `d` that start at 0:
    ///
    /// ```text
    /// a ← rho · a + (1 - rho) · q²
    /// c ← √(d + epsilon) / √(a + epsilon) · q
    /// d ← rho · d + (1 - rho) · c²
    /// w ← w - learning_rate · (c + weight_decay · w)
    /// ```
    ///
    /// An idle step (`g = 0`) multiplies weight and states, each by a number.
    ///
    /// Source: Zeiler, "ADADELTA: an adaptive learning rate method", arXiv 1212.5701, algorithm 1,
    /// where the learning rate is 1.
    pub struct AdaDelta = "adadelta" {
        /// Step size.
        learning_rate: f64 = 1.0, PositiveFinite;
        /// Fraction of the mean squares kept from step to step.
        rho: f64 = 0.9, BelowOne;
        /// Gets the first steps going.
        epsilon: f64 = 1e-5, PositiveFinite;
        /// L2 penalty: the fraction `learning_rate · weight_decay` of a weight is taken off at each
        /// step.
        weight_decay: f64 = 0.0, AtLeastZero;
    }
    step: AdaDeltaStep;
    states: ["a", "d"];
    numbers: |step| [learning_rate: step.learning_rate, rho: step.rho, epsilon: step.epsilon, decay: step.decay];
    gradient: CLIPPED;
    recurrence: [
        a = "rho * a + (1 - rho) * q * q",
        change = "sqrt((d + epsilon) / (a + epsilon)) * q",
        d = "rho * d + (1 - rho) * change * change",
        w = "w - (learning_rate * change + decay * w)",
    ];
    idle: ScaleMap [
        w = "of_weight * w",
        a = "of_state * a",
        d = "of_state * d",
    ];
}

/// [`AdaDelta`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaDeltaStep<T> {
    learning_rate: T,
    rho: T,
    epsilon: T,
    /// learning_rate · weight_decay.
    decay: T,
    preparation: Preparation<T>,
}

impl<T: Float> AdaDeltaStep<T> {
    pub(super) fn resolve(rule: &AdaDelta, learning_rate: f64, penalty_scale: f64, _: u64) -> Self {
        AdaDeltaStep {
            learning_rate: T::of(learning_rate),
            rho: T::of(rule.rho),
            epsilon: T::of(rule.epsilon),
            decay: T::of(learning_rate * rule.weight_decay * penalty_scale),
            preparation: Preparation::new(rule.rescale_grad, rule.clip_gradient),
        }
    }
}

impl<T: Float> Step<T> for AdaDeltaStep<T> {
    /// a and d.
    type State = [T; 2];
    type Idle = ScaleMap;

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 2], grad: T) {
        let grad = self.preparation.apply(grad);
        let [squares, changes] = *state;
        let squares = self.rho * squares + (T::one() - self.rho) * grad * grad;
        let change = ((changes + self.epsilon) / (squares + self.epsilon)).sqrt() * grad;
        *state = [squares, self.rho * changes + (T::one() - self.rho) * change * change];
        *weight -= self.learning_rate * change + self.decay * *weight;
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<ScaleMap> {
        Idle::Closed(ScaleMap { weight: 1.0 - self.decay.as_f64(), state: self.rho.as_f64() })
    }

    #[inline]
    fn apply_idle(&self, map: &ScaleMap, weight: &mut T, state: &mut [T; 2]) {
        map.apply(weight, state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpdateRule;

    #[test]
    fn a_step_by_hand() {
        let rule = AdaDelta { rho: 0.5, epsilon: 1.0, weight_decay: 0.25, ..AdaDelta::default() };
        let (mut w, mut state) = (2.0, [0.0, 3.0]);
        rule.step::<f64>(0.5, 1.0, 0).update(&mut w, &mut state, 6.0f64.sqrt());
        // a = 3, so that c is the gradient.
        assert!((state[0] - 3.0).abs() < 1e-14 && (state[1] - (1.5 + 3.0)).abs() < 1e-14);
        assert!((w - (2.0 - 0.5 * (6.0f64.sqrt() + 0.25 * 2.0))).abs() < 1e-14);
    }
}
