//! AdaMax: Adam with the largest gradient in place of the root of the mean square.

use super::gradient::Preparation;
use super::means::{corrected_after, taken_up};
use super::rule::update_rule;
use super::{Idle, MOST_NUMBERS, Step};
use crate::element::Float;

update_rule! {
    /// AdaMax.
    ///
    /// With `g` the gradient, `t = 1, 2, …` the steps made, and states `m` and `u` that start at 0:
    ///
    /// ```text
    /// q ← clip(rescale_grad · g + weight_decay · w)          to ±clip_gradient
    /// m ← beta1 · m + (1 - beta1) · q
    /// u ← max(beta2 · u, |q|)
    /// w ← w - learning_rate / (1 - beta1^t) · m / u          where u > 0
    /// ```
    ///
    /// Idle steps have no closed form that holds with weight decay; `lazy_update` must be chosen, as of [`Adam`](super::Adam).
    ///
    /// Source: Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 2.
    pub struct AdaMax = "adamax" {
        /// Step size.
        learning_rate: f64 = 0.002, PositiveFinite;
        /// Fraction of the mean gradient kept from step to step.
        beta1: f64 = 0.9, BelowOne;
        /// Fraction of the largest gradient kept from step to step.
        beta2: f64 = 0.999, BelowOne;
        /// L2 penalty: adds `weight_decay · w` to the gradient.
        weight_decay: f64 = 0.0, AtLeastZero;
    }
    step: AdaMaxStep;
    states: ["m", "u"];
    numbers: |step| [rate: step.rate, beta1: step.beta1, beta2: step.beta2, decay: step.decay];
    gradient: CLIPPED_WITH_DECAY;
    recurrence: [
        m = "beta1 * m + (1 - beta1) * q",
        u = "max(abs(q), beta2 * u)",
        w = "select(u, w - rate * m / u, w)",
    ];
    counts: until_corrected;
}

impl AdaMax {
    fn until_corrected(&self) -> u64 {
        corrected_after(self.beta1)
    }
}

/// [`AdaMax`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaMaxStep<T> {
    /// The learning rate, corrected for the start at zero.
    rate: T,
    beta1: T,
    beta2: T,
    decay: T,
    preparation: Preparation<T>,
}

impl<T: Float> AdaMaxStep<T> {
    pub(super) fn resolve(
        rule: &AdaMax,
        learning_rate: f64,
        penalty_scale: f64,
        clock: u64,
    ) -> Self {
        AdaMaxStep {
            rate: T::of(learning_rate / taken_up(rule.beta1, clock.saturating_add(1))),
            beta1: T::of(rule.beta1),
            beta2: T::of(rule.beta2),
            decay: T::of(rule.weight_decay * penalty_scale),
            preparation: Preparation::new(rule.rescale_grad, rule.clip_gradient),
        }
    }
}

impl<T: Float> Step<T> for AdaMaxStep<T> {
    /// m and u.
    type State = [T; 2];
    type Idle = ();

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 2], grad: T) {
        let grad = self.preparation.with_decay(grad, self.decay * *weight);
        let mean = self.beta1 * state[0] + (T::one() - self.beta1) * grad;
        let kept = self.beta2 * state[1];
        // NaN stays NaN.
        let largest = if kept > grad.abs() { kept } else { grad.abs() };
        *state = [mean, largest];
        if !largest.is_zero() {
            *weight -= self.rate * mean / largest;
        }
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<()> {
        Idle::Open
    }

    fn apply_idle(&self, (): &(), _: &mut T, _: &mut [T; 2]) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update_rules::UpdateRule;

    #[test]
    fn two_steps_by_hand() {
        let rule = AdaMax { beta1: 0.5, beta2: 0.25, ..AdaMax::default() };
        let (mut w, mut state) = (1.0, [0.0; 2]);
        rule.step::<f64>(0.5, 1.0, 0).update(&mut w, &mut state, -2.0);
        assert_eq!((w, state), (1.5, [-1.0, 2.0]));
        rule.step::<f64>(0.5, 1.0, 1).update(&mut w, &mut state, 0.25);
        // The mean is -0.5 + 0.125, the largest 0.5 of 0.5 and 0.25.
        assert_eq!((w, state), (1.5 + 0.5 / 0.75 * 0.375 / 0.5, [-0.375, 0.5]));
    }
}
