//! Adam: momentum and a rate for each weight, both corrected for their start at zero.

use super::gradient::Preparation;
use super::idle_means::{along_mean, idle_along_mean};
use super::means::{corrected_after, taken_up};
use super::rule::update_rule;
use super::{Idle, MOST_NUMBERS, MeanMap, Step};
use sparse_core::element::Float;

update_rule! {
    /// Adam.
    ///
    /// With `g` the gradient, `t = 1, 2, …` the steps made, and states `m` and `v` that start at 0:
    ///
    /// ```text
    /// q ← clip(rescale_grad · g + weight_decay · w)          to ±clip_gradient
    /// m ← beta1 · m + (1 - beta1) · q
    /// v ← beta2 · v + (1 - beta2) · q²
    /// w ← w - learning_rate · √(1 - beta2^t) / (1 - beta1^t) · m / (√v + epsilon)
    /// ```
    ///
    /// In idle steps (`g = 0`) a weight moves on along a mean that shrinks. Step `j` of a run of
    /// them moves it by `rⱼ · m · beta1ʲ / (√v · θⱼ + epsilon)`, with `rⱼ` the step's rate,
    /// `θⱼ = √beta2ʲ`, and `m` and `v` as they were before the run. With `x = epsilon / √v` all of
    /// them together make
    ///
    /// ```text
    /// Mᵢ = Σ rⱼ · beta1ʲ · θⱼ^(i - 1)                        i = 0, …, 3
    /// α = M₁ / M₀,  V and T: variance and third central moment of θ, with weights rⱼ · beta1ʲ / θⱼ
    /// A = α - V / (x + α + T / V)
    /// w ← w - m · M₀ · A / (√v · A + epsilon)
    /// ```
    ///
    /// which is one step of the rate `M₀ · A`, at a root that has shrunk by `A` (Gauss' quadrature
    /// at two places, as a continued fraction). The `Mᵢ` are the same for all weights, and those of
    /// steps that follow one another are added up: those of a run after `k` others count
    /// `(beta1 / √beta2)ᵏ · √beta2ᵏⁱ` times. So a row costs O(1), however many steps it has missed
    /// and however rates changed meanwhile, and is what `LazyUpdate::Dense` makes of it up to 4
    /// units in the last place and a millionth of the distance moved. With the defaults this is
    /// right to 1e-8 for any `v`. Where the formula may be off by more than 2⁻²², estimated as
    /// `6 · x · V² / (α · (α + x)⁴)`, as where `beta1` is near `√beta2` (above beta2^4.5, and the
    /// root has halved), the steps are made in pieces, until nothing is left of `m`.
    ///
    /// With `weight_decay`, which the means see, there is no such form, and
    /// [`LazyUpdate::Exact`](super::LazyUpdate::Exact) is refused: `AdamW` decays weights beside
    /// its step. [`LazyUpdate::Touched`](super::LazyUpdate::Touched) changes the rows of a batch
    /// only. `t` counts steps, not the updates of a row.
    ///
    /// Source: Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1
    /// in the order of computation at the end of its section 2 (where `epsilon` is called ε̂).
    pub struct Adam = "adam" {
        /// Step size.
        learning_rate: f64 = 0.001, PositiveFinite;
        /// Fraction of the mean gradient kept from step to step.
        beta1: f64 = 0.9, BelowOne;
        /// Fraction of the mean square kept from step to step.
        beta2: f64 = 0.999, BelowOne;
        /// Keeps steps finite where gradients vanish.
        epsilon: f64 = 1e-8, PositiveFinite;
        /// L2 penalty: adds `weight_decay · w` to the gradient.
        weight_decay: f64 = 0.0, AtLeastZero;
    }
    step: AdamStep;
    states: ["m", "v"];
    numbers: |step| [rate: step.rate, keep_mean: step.keep_mean, take_mean: step.take_mean, keep_square: step.keep_square, take_square: step.take_square, epsilon: step.epsilon, decay: step.decay];
    gradient: CLIPPED_WITH_DECAY;
    recurrence: [
        m = "keep_mean * m + take_mean * q",
        v = "keep_square * v + take_square * q * q",
        w = "w - rate * m / (sqrt(v) + epsilon)",
    ];
    counts: until_corrected;
}

impl Adam {
    fn until_corrected(&self) -> u64 {
        corrected_after(self.beta1.max(self.beta2))
    }
}

/// [`Adam`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamStep<T> {
    /// The learning rate, corrected for the start at zero.
    rate: T,
    keep_mean: T,
    take_mean: T,
    keep_square: T,
    take_square: T,
    epsilon: T,
    decay: T,
    preparation: Preparation<T>,
}

impl<T: Float> AdamStep<T> {
    pub(super) fn resolve(rule: &Adam, learning_rate: f64, penalty_scale: f64, clock: u64) -> Self {
        let steps = clock.saturating_add(1);
        let correction = taken_up(rule.beta2, steps).sqrt() / taken_up(rule.beta1, steps);
        AdamStep {
            rate: T::of(learning_rate * correction),
            keep_mean: T::of(rule.beta1),
            take_mean: T::of(1.0 - rule.beta1),
            keep_square: T::of(rule.beta2),
            take_square: T::of(1.0 - rule.beta2),
            epsilon: T::of(rule.epsilon),
            decay: T::of(rule.weight_decay * penalty_scale),
            preparation: Preparation::new(rule.rescale_grad, rule.clip_gradient),
        }
    }
}

along_mean!(AdamStep, keep_mean, keep_square);

impl<T: Float> Step<T> for AdamStep<T> {
    /// m and v.
    type State = [T; 2];
    type Idle = MeanMap;

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 2], grad: T) {
        let grad = self.preparation.with_decay(grad, self.decay * *weight);
        let mean = self.keep_mean * state[0] + self.take_mean * grad;
        let square = self.keep_square * state[1] + self.take_square * grad * grad;
        *state = [mean, square];
        *weight -= self.rate * mean / (square.sqrt() + self.epsilon);
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<MeanMap> {
        if !self.decay.is_zero() {
            return Idle::Open;
        }
        Idle::Closed(MeanMap::of_step(1.0, self.rate.as_f64(), 1.0, self.betas()))
    }

    idle_along_mean!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpdateRule;

    #[test]
    fn the_first_step_is_the_learning_rate_against_the_gradient() {
        let rule = Adam { epsilon: 1e-30, ..Adam::default() };
        let step = rule.step::<f64>(0.125, 1.0, 0);
        for grad in [1e-6, -3.0, 700.0] {
            let (mut w, mut state) = (1.0, [0.0; 2]);
            step.update(&mut w, &mut state, grad);
            assert!((w - (1.0 - 0.125 * f64::signum(grad))).abs() < 1e-12, "{w}");
        }
    }

    #[test]
    fn equal_gradients_make_equal_steps() {
        let rule = Adam { epsilon: 1e-30, ..Adam::default() };
        let (mut w, mut state) = (0.0, [0.0; 2]);
        for clock in 0..1000 {
            rule.step::<f64>(0.01, 1.0, clock).update(&mut w, &mut state, 0.37);
            assert!((w + 0.01 * (clock + 1) as f64).abs() < 1e-10, "{clock}: {w}");
        }
    }

    #[test]
    fn the_count_ends_where_nothing_is_left_to_correct() {
        let rule = Adam::default();
        let until = rule.counts_until();
        assert!((30_000..50_000).contains(&until), "{until}");
        let step = |clock| rule.step::<f64>(0.25, 1.0, clock);
        assert_eq!(step(until), step(u64::MAX));
        assert_ne!(step(until / 2), step(u64::MAX));
    }

    #[test]
    fn after_very_many_steps_there_is_nothing_to_correct() {
        let step = Adam::default().step::<f64>(0.25, 1.0, u64::MAX);
        assert_eq!(step.rate, 0.25);
    }
}
