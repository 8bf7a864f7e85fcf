//! AdamW: Adam whose weight decay is beside the adaptive step.

use super::gradient::Preparation;
use super::idle_means::{along_mean, idle_along_mean};
use super::means::{corrected_after, taken_up};
use super::rule::update_rule;
use super::{Idle, MOST_NUMBERS, MeanMap, Step};
use sparse_core::element::Float;

update_rule! {
    /// AdamW.
    ///
    /// With `g` the gradient, `t = 1, 2, …` the steps made, and states `m` and `v` that start at 0:
    ///
    /// ```text
    /// q ← clip(rescale_grad · g)                             to ±clip_gradient
    /// m ← beta1 · m + (1 - beta1) · q
    /// v ← beta2 · v + (1 - beta2) · q²
    /// r ← √(1 - beta2^t) / (1 - beta1^t) · m / (√v + epsilon)
    /// w ← w - learning_rate · (r + weight_decay · w)
    /// ```
    ///
    /// [`Adam`](super::Adam) but for the decay, which the means do not see. Idle steps are those of
    /// Adam, and shrink the weight: what a step moves a weight by shrinks with it in those that
    /// follow.
    ///
    /// Source: Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019, algorithm
    /// 2; a schedule multiplies the learning rate, and with it the decay.
    pub struct AdamW = "adamw" {
        /// Step size.
        learning_rate: f64 = 0.001, PositiveFinite;
        /// Fraction of the mean gradient kept from step to step.
        beta1: f64 = 0.9, BelowOne;
        /// Fraction of the mean square kept from step to step.
        beta2: f64 = 0.999, BelowOne;
        /// Keeps steps finite where gradients vanish.
        epsilon: f64 = 1e-8, PositiveFinite;
        /// The fraction `learning_rate · weight_decay` of a weight is taken off at each step.
        weight_decay: f64 = 0.01, AtLeastZero;
    }
    step: AdamWStep;
    states: ["m", "v"];
    numbers: |step| [rate: step.rate, beta1: step.beta1, beta2: step.beta2, epsilon: step.epsilon, decay: step.decay];
    gradient: CLIPPED;
    recurrence: [
        m = "beta1 * m + (1 - beta1) * q",
        v = "beta2 * v + (1 - beta2) * q * q",
        w = "w - (rate * m / (sqrt(v) + epsilon) + decay * w)",
    ];
    counts: until_corrected;
}

impl AdamW {
    fn until_corrected(&self) -> u64 {
        corrected_after(self.beta1.max(self.beta2))
    }
}

/// [`AdamW`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamWStep<T> {
    /// The learning rate, corrected for the start at zero.
    rate: T,
    beta1: T,
    beta2: T,
    epsilon: T,
    /// learning_rate · weight_decay.
    decay: T,
    preparation: Preparation<T>,
}

impl<T: Float> AdamWStep<T> {
    pub(super) fn resolve(
        rule: &AdamW,
        learning_rate: f64,
        penalty_scale: f64,
        clock: u64,
    ) -> Self {
        let steps = clock.saturating_add(1);
        let correction = taken_up(rule.beta2, steps).sqrt() / taken_up(rule.beta1, steps);
        AdamWStep {
            rate: T::of(learning_rate * correction),
            beta1: T::of(rule.beta1),
            beta2: T::of(rule.beta2),
            epsilon: T::of(rule.epsilon),
            decay: T::of(learning_rate * rule.weight_decay * penalty_scale),
            preparation: Preparation::new(rule.rescale_grad, rule.clip_gradient),
        }
    }
}

along_mean!(AdamWStep, beta1, beta2);

impl<T: Float> Step<T> for AdamWStep<T> {
    /// m and v.
    type State = [T; 2];
    type Idle = MeanMap;

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 2], grad: T) {
        let grad = self.preparation.apply(grad);
        let mean = self.beta1 * state[0] + (T::one() - self.beta1) * grad;
        let square = self.beta2 * state[1] + (T::one() - self.beta2) * grad * grad;
        *state = [mean, square];
        *weight -= self.rate * mean / (square.sqrt() + self.epsilon) + self.decay * *weight;
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<MeanMap> {
        let scale = 1.0 - self.decay.as_f64();
        Idle::Closed(MeanMap::of_step(scale, self.rate.as_f64(), 1.0, self.betas()))
    }

    idle_along_mean!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Adam, UpdateRule};

    #[test]
    fn the_decay_is_beside_adams_step() {
        let rule = AdamW { weight_decay: 0.5, ..AdamW::default() };
        let (mut w, mut state) = (2.0, [0.0; 2]);
        let (mut by_adam, mut adams) = (2.0, [0.0; 2]);
        rule.step::<f64>(0.125, 1.0, 0).update(&mut w, &mut state, 0.75);
        Adam::default().step::<f64>(0.125, 1.0, 0).update(&mut by_adam, &mut adams, 0.75);
        assert!((w - (by_adam - 0.125 * 0.5 * 2.0)).abs() < 1e-15);
        assert!((state[0] - adams[0]).abs() + (state[1] - adams[1]).abs() < 1e-15);
    }
}
