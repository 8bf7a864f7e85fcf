//! FTML: follow the moving leader.

use super::gradient::Preparation;
use super::means::{corrected_after, taken_up};
use super::rule::update_rule;
use super::{Idle, IdleMap, MOST_NUMBERS, Step};
use sparse_core::element::Float;

update_rule! {
    /// FTML.
    ///
    /// With `g` the gradient, `t = 1, 2, …` the steps made, and states `d`, `v` and `z` that start
    /// at 0:
    ///
    /// ```text
    /// q ← clip(rescale_grad · g + weight_decay · w)          to ±clip_gradient
    /// v ← beta2 · v + (1 - beta2) · q²
    /// e ← (1 - beta1^t) / learning_rate · (√(v / (1 - beta2^t)) + epsilon)
    /// z ← beta1 · z + (1 - beta1) · q - (e - beta1 · d) · w
    /// d ← e
    /// w ← -z / d
    /// ```
    ///
    /// Since `w = -z / d`, an idle step (`g = 0`) leaves the weight, and makes `v` smaller; `d` is
    /// that of the last one. With `weight_decay` there is no closed form. At learning rate 0
    /// nothing moves.
    ///
    /// Source: Zheng and Kwok, "Follow the moving leader in deep learning", ICML 2017, algorithm 1.
    pub struct Ftml = "ftml" {
        /// Step size.
        learning_rate: f64 = 0.0025, PositiveFinite;
        /// Fraction of the past that the leader keeps from step to step.
        beta1: f64 = 0.6, BelowOne;
        /// Fraction of the mean square kept from step to step.
        beta2: f64 = 0.999, BelowOne;
        /// Keeps steps finite where gradients vanish.
        epsilon: f64 = 1e-8, PositiveFinite;
        /// L2 penalty: adds `weight_decay · w` to the gradient.
        weight_decay: f64 = 0.0, AtLeastZero;
    }
    step: FtmlStep;
    states: ["d", "v", "z"];
    numbers: |step| [inverse_rate: step.inverse_rate, beta1: step.beta1, beta2: step.beta2, correction: step.correction, epsilon: step.epsilon, decay: step.decay];
    gradient: CLIPPED_WITH_DECAY;
    recurrence: [
        square = "beta2 * v + (1 - beta2) * q * q",
        next = "inverse_rate * (sqrt(square) * correction + epsilon)",
        sum = "beta1 * z + (1 - beta1) * q - (next - beta1 * d) * w",
        d = "select(inverse_rate, next, d)",
        v = "select(inverse_rate, square, v)",
        z = "select(inverse_rate, sum, z)",
        w = "select(inverse_rate, -sum / next, w)",
    ];
    idle: FtmlMap [
        v = "of_square * v",
        next = "of_rate * (sqrt(v) * of_root + epsilon)",
        moves = "select(d, of_rate, d)",
        z = "select(moves, -next * w, z)",
        d = "select(moves, next, d)",
    ];
    counts: until_corrected;
}

impl Ftml {
    fn until_corrected(&self) -> u64 {
        corrected_after(self.beta1.max(self.beta2))
    }
}

/// [`Ftml`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FtmlStep<T> {
    /// (1 - beta1^t) / learning_rate, or 0 where that is 0: then nothing moves.
    inverse_rate: T,
    beta1: T,
    beta2: T,
    /// 1 / √(1 - beta2^t).
    correction: T,
    epsilon: T,
    decay: T,
    preparation: Preparation<T>,
}

impl<T: Float> FtmlStep<T> {
    pub(super) fn resolve(rule: &Ftml, learning_rate: f64, penalty_scale: f64, clock: u64) -> Self {
        let steps = clock.saturating_add(1);
        let inverse_rate =
            if learning_rate > 0.0 { taken_up(rule.beta1, steps) / learning_rate } else { 0.0 };
        FtmlStep {
            inverse_rate: T::of(inverse_rate),
            beta1: T::of(rule.beta1),
            beta2: T::of(rule.beta2),
            correction: T::of(taken_up(rule.beta2, steps).sqrt().recip()),
            epsilon: T::of(rule.epsilon),
            decay: T::of(rule.weight_decay * penalty_scale),
            preparation: Preparation::new(rule.rescale_grad, rule.clip_gradient),
        }
    }
}

/// `v ← of_square · v`, then `d ← of_rate · (√v · of_root + epsilon)` and `z ← -d · w`, where
/// `of_rate` is not 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FtmlMap {
    /// What the mean square is multiplied with.
    pub of_square: f64,
    /// `(1 - beta1^t) / learning_rate` of the last step at a rate that is not 0.
    pub of_rate: f64,
    /// `1 / √(1 - beta2^t)` of that step.
    pub of_root: f64,
}

impl IdleMap for FtmlMap {
    const IDENTITY: FtmlMap = FtmlMap { of_square: 1.0, of_rate: 0.0, of_root: 0.0 };
    const NUMBERS: &'static [&'static str] = &["of_square", "of_rate", "of_root"];

    fn after(&self, first: &FtmlMap) -> FtmlMap {
        let last = if self.of_rate == 0.0 { first } else { self };
        FtmlMap { of_square: self.of_square * first.of_square, ..*last }
    }

    fn write(&self, numbers: &mut Vec<f64>) {
        numbers.extend([self.of_square, self.of_rate, self.of_root]);
    }

    fn read(numbers: &[f64]) -> Option<Self> {
        let &[of_square, of_rate, of_root] = numbers else { return None };
        Some(FtmlMap { of_square, of_rate, of_root })
    }

    /// Of states that are still 0.
    fn spares_fresh(&self) -> bool {
        true
    }
}

impl<T: Float> Step<T> for FtmlStep<T> {
    /// d, v and z.
    type State = [T; 3];
    type Idle = FtmlMap;

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 3], grad: T) {
        // The same for all weights of a step.
        if self.inverse_rate.is_zero() {
            return;
        }
        let grad = self.preparation.with_decay(grad, self.decay * *weight);
        let [distance, square, sum] = *state;
        let square = self.beta2 * square + (T::one() - self.beta2) * grad * grad;
        let next = self.inverse_rate * (square.sqrt() * self.correction + self.epsilon);
        let sum = self.beta1 * sum + (T::one() - self.beta1) * grad
            - (next - self.beta1 * distance) * *weight;
        *state = [next, square, sum];
        *weight = -sum / next;
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<FtmlMap> {
        if self.inverse_rate.is_zero() {
            return Idle::Nothing;
        }
        if !self.decay.is_zero() {
            return Idle::Open;
        }
        Idle::Closed(FtmlMap {
            of_square: self.beta2.as_f64(),
            of_rate: self.inverse_rate.as_f64(),
            of_root: self.correction.as_f64(),
        })
    }

    #[inline]
    fn apply_idle(&self, map: &FtmlMap, weight: &mut T, state: &mut [T; 3]) {
        let square = map.of_square * state[1].as_f64();
        state[1] = T::of(square);
        // A weight that has had no gradient may wait with its distance: the next step is the same
        // without it.
        if map.of_rate == 0.0 || state[0].is_zero() {
            return;
        }
        let next = map.of_rate * (square.sqrt() * map.of_root + self.epsilon.as_f64());
        state[0] = T::of(next);
        state[2] = T::of(-next * weight.as_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpdateRule;

    #[test]
    fn the_first_step_by_hand() {
        let rule = Ftml { beta1: 0.5, epsilon: 1.0, ..Ftml::default() };
        let (mut w, mut state) = (2.0, [0.0; 3]);
        rule.step::<f64>(0.25, 1.0, 0).update(&mut w, &mut state, 3.0);
        // e = 0.5 / 0.25 · (3 + 1) = 8; z = 0.5 · 3 - 8 · 2.
        assert!((state[0] - 8.0).abs() < 1e-12 && (state[2] + 14.5).abs() < 1e-12, "{state:?}");
        assert!((w - 14.5 / 8.0).abs() < 1e-12, "{w}");
    }
}
