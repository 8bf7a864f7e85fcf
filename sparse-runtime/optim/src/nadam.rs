//! Nadam: Adam that looks ahead along its momentum.

use super::gradient::Preparation;
use super::idle_means::{along_mean, idle_along_mean};
use super::means::{corrected_after, taken_up};
use super::rule::update_rule;
use super::{Idle, MOST_NUMBERS, MeanMap, Step};
use sparse_core::element::Float;

update_rule! {
    /// Nadam.
    ///
    /// With `g` the gradient, `t = 1, 2, …` the steps made, and states `m` and `v` that start at 0:
    ///
    /// ```text
    /// μₜ = beta1 · (1 - 0.96^(t · schedule_decay) / 2)
    /// q ← clip(rescale_grad · g + weight_decay · w)          to ±clip_gradient
    /// m ← beta1 · m + (1 - beta1) · q
    /// v ← beta2 · v + (1 - beta2) · q²
    /// a ← (1 - μₜ) · q / (1 - μ₁⋯μₜ) + μₜ₊₁ · m / (1 - μ₁⋯μₜ₊₁)
    /// w ← w - learning_rate · a / (√(v / (1 - beta2^t)) + epsilon)
    /// ```
    ///
    /// Idle steps (`q = 0`) are those of [`Adam`](super::Adam), at the rate
    /// `learning_rate · μₜ₊₁ / (1 - μ₁⋯μₜ₊₁)` and with `θⱼ = √(beta2ʲ / (1 - beta2^t))`, where `t`
    /// is the number of the step. With `weight_decay` they have no closed form.
    ///
    /// Source: Dozat, "Incorporating Nesterov momentum into Adam", ICLR 2016 workshop, algorithm 2
    /// with the schedule of its section 3.
    pub struct Nadam = "nadam" {
        /// Step size.
        learning_rate: f64 = 0.001, PositiveFinite;
        /// Fraction of the mean gradient kept from step to step.
        beta1: f64 = 0.9, BelowOne;
        /// Fraction of the mean square kept from step to step.
        beta2: f64 = 0.999, BelowOne;
        /// Keeps steps finite where gradients vanish.
        epsilon: f64 = 1e-8, PositiveFinite;
        /// How fast the momentum rises from half of `beta1` to all of it.
        schedule_decay: f64 = 0.004, AtLeastZero;
        /// L2 penalty: adds `weight_decay · w` to the gradient.
        weight_decay: f64 = 0.0, AtLeastZero;
    }
    step: NadamStep;
    states: ["m", "v"];
    numbers: |step| [beta1: step.beta1, beta2: step.beta2, of_grad: step.of_grad, of_mean: step.of_mean, correction: step.correction, epsilon: step.epsilon, decay: step.decay];
    gradient: CLIPPED_WITH_DECAY;
    recurrence: [
        m = "beta1 * m + (1 - beta1) * q",
        v = "beta2 * v + (1 - beta2) * q * q",
        w = "w - (of_grad * q + of_mean * m) / (sqrt(v) * correction + epsilon)",
    ];
    counts: until_corrected;
}

impl Nadam {
    /// 0.96 to the power of `schedule_decay`: what is left after a step of the half that the
    /// momentum lacks at first.
    fn ratio(&self) -> f64 {
        0.96f64.powf(self.schedule_decay)
    }

    fn until_corrected(&self) -> u64 {
        let schedule = if self.schedule_decay > 0.0 { corrected_after(self.ratio()) } else { 0 };
        corrected_after(self.beta1.max(self.beta2)).max(schedule)
    }

    /// μ₁⋯μₜ, μₜ and μₜ₊₁.
    fn momenta(&self, steps: u64) -> [f64; 3] {
        let ratio = self.ratio();
        let momentum = |lacking: f64| self.beta1 * (1.0 - 0.5 * lacking);
        let (mut product, mut lacking) = (1.0, 1.0);
        for _ in 0..steps.min(self.until_corrected()) {
            lacking *= ratio;
            product *= momentum(lacking);
            // Nothing next to 1.
            if product < f64::EPSILON / 4.0 {
                break;
            }
        }
        let lacking = ratio.powf(steps as f64);
        [product, momentum(lacking), momentum(lacking * ratio)]
    }
}

/// [`Nadam`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NadamStep<T> {
    beta1: T,
    beta2: T,
    /// What the gradient and the mean contribute to a step.
    of_grad: T,
    of_mean: T,
    /// 1 / √(1 - beta2^t).
    correction: T,
    epsilon: T,
    decay: T,
    preparation: Preparation<T>,
}

impl<T: Float> NadamStep<T> {
    pub(super) fn resolve(
        rule: &Nadam,
        learning_rate: f64,
        penalty_scale: f64,
        clock: u64,
    ) -> Self {
        let steps = clock.saturating_add(1);
        let [product, now, next] = rule.momenta(steps);
        NadamStep {
            beta1: T::of(rule.beta1),
            beta2: T::of(rule.beta2),
            of_grad: T::of(learning_rate * (1.0 - now) / (1.0 - product)),
            of_mean: T::of(learning_rate * next / (1.0 - product * next)),
            correction: T::of(taken_up(rule.beta2, steps).sqrt().recip()),
            epsilon: T::of(rule.epsilon),
            decay: T::of(rule.weight_decay * penalty_scale),
            preparation: Preparation::new(rule.rescale_grad, rule.clip_gradient),
        }
    }
}

along_mean!(NadamStep, beta1, beta2);

impl<T: Float> Step<T> for NadamStep<T> {
    /// m and v.
    type State = [T; 2];
    type Idle = MeanMap;

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 2], grad: T) {
        let grad = self.preparation.with_decay(grad, self.decay * *weight);
        let mean = self.beta1 * state[0] + (T::one() - self.beta1) * grad;
        let square = self.beta2 * state[1] + (T::one() - self.beta2) * grad * grad;
        *state = [mean, square];
        let ahead = self.of_grad * grad + self.of_mean * mean;
        *weight -= ahead / (square.sqrt() * self.correction + self.epsilon);
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<MeanMap> {
        if !self.decay.is_zero() {
            return Idle::Open;
        }
        let (rate, correction) = (self.of_mean.as_f64(), self.correction.as_f64());
        Idle::Closed(MeanMap::of_step(1.0, rate, correction, self.betas()))
    }

    idle_along_mean!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpdateRule;

    #[test]
    fn the_first_step_by_hand() {
        let rule = Nadam { epsilon: 1e-30, schedule_decay: 0.0, ..Nadam::default() };
        let (mut w, mut state) = (1.0, [0.0; 2]);
        rule.step::<f64>(0.125, 1.0, 0).update(&mut w, &mut state, 3.0);
        // μ is 0.45 at every step; √(v / (1 - beta2)) is the gradient.
        let ahead = (1.0 - 0.45) / (1.0 - 0.45) + 0.45 * 0.1 / (1.0 - 0.45 * 0.45);
        assert!((w - (1.0 - 0.125 * ahead)).abs() < 1e-12, "{w}");
    }

    #[test]
    fn after_very_many_steps_nothing_changes() {
        let rule = Nadam::default();
        let step = |clock| rule.step::<f64>(0.25, 1.0, clock);
        assert_eq!(step(rule.counts_until()), step(rule.counts_until() * 2));
        assert_ne!(step(1000), step(1001));
    }
}
