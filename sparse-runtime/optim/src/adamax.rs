//! AdaMax: Adam with the largest gradient in place of the root of the mean square.

use super::gradient::Preparation;
use super::means::{corrected_after, taken_up};
use super::rule::update_rule;
use super::{Idle, IdleMap, MOST_NUMBERS, Step};
use sparse_core::element::Float;

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
    /// `k` idle steps (`g = 0`) move a weight by `m / u · Σ rⱼ · (beta1 / beta2)ʲ`, with `rⱼ` the
    /// rate of step `j` of them, and `m` and `u` as they were before. With `weight_decay`, or
    /// `beta1 > beta2`, by which a weight without a gradient moves farther at every step, there is
    /// no closed form.
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
    idle: AdaMaxMap [
        w = "select(u, w - shift * m / u, w)",
        m = "of_mean * m",
        u = "of_largest * u",
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

/// `w ← w - shift · m / u`, `m ← of_mean · m` and `u ← of_largest · u`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaMaxMap {
    /// What the weight is moved by, in units of `m / u`.
    pub shift: f64,
    /// What the mean is multiplied with.
    pub of_mean: f64,
    /// What the largest gradient is multiplied with.
    pub of_largest: f64,
    /// What their quotient is multiplied with, which may be there where both are too small to be.
    pub of_quotient: f64,
}

impl IdleMap for AdaMaxMap {
    const IDENTITY: AdaMaxMap =
        AdaMaxMap { shift: 0.0, of_mean: 1.0, of_largest: 1.0, of_quotient: 1.0 };
    const NUMBERS: &'static [&'static str] = &["shift", "of_mean", "of_largest", "of_quotient"];

    fn after(&self, first: &AdaMaxMap) -> AdaMaxMap {
        AdaMaxMap {
            shift: first.shift + first.of_quotient * self.shift,
            of_mean: self.of_mean * first.of_mean,
            of_largest: self.of_largest * first.of_largest,
            of_quotient: self.of_quotient * first.of_quotient,
        }
    }

    fn write(&self, numbers: &mut Vec<f64>) {
        numbers.extend([self.shift, self.of_mean, self.of_largest, self.of_quotient]);
    }

    fn read(numbers: &[f64]) -> Option<Self> {
        let &[shift, of_mean, of_largest, of_quotient] = numbers else { return None };
        Some(AdaMaxMap { shift, of_mean, of_largest, of_quotient })
    }

    /// Of states that are still 0.
    fn spares_fresh(&self) -> bool {
        true
    }
}

impl<T: Float> Step<T> for AdaMaxStep<T> {
    /// m and u.
    type State = [T; 2];
    type Idle = AdaMaxMap;

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

    fn idle(&self) -> Idle<AdaMaxMap> {
        let [of_mean, of_largest] = [self.beta1, self.beta2].map(T::as_f64);
        if !self.decay.is_zero() || of_mean > of_largest {
            return Idle::Open;
        }
        // Where nothing is kept there is nothing to move.
        let of_quotient = if of_mean == 0.0 { 0.0 } else { of_mean / of_largest };
        let shift = self.rate.as_f64() * of_quotient;
        Idle::Closed(AdaMaxMap { shift, of_mean, of_largest, of_quotient })
    }

    #[inline]
    fn apply_idle(&self, map: &AdaMaxMap, weight: &mut T, state: &mut [T; 2]) {
        let [mean, largest] = state.map(T::as_f64);
        if largest != 0.0 {
            *weight = T::of(weight.as_f64() - map.shift * mean / largest);
        }
        *state = [map.of_mean * mean, map.of_largest * largest].map(T::of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpdateRule;

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
