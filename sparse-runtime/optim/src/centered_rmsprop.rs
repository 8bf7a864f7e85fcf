//! Centered RMSProp: steps divided by a running standard deviation, with momentum.

use super::gradient::{Preparation, within};
use super::rule::update_rule;
use super::{Idle, IdleMap, MOST_NUMBERS, MatrixMap, Step};
use sparse_core::element::Float;

update_rule! {
    /// Centered RMSProp with momentum.
    ///
    /// With `g` the gradient, and states `n`, `m` and `v` that start at 0:
    ///
    /// ```text
    /// q ← clip(rescale_grad · g + weight_decay · w)          to ±clip_gradient
    /// n ← rho · n + (1 - rho) · q²
    /// m ← rho · m + (1 - rho) · q
    /// v ← momentum · v - learning_rate · q / √(n - m² + epsilon)
    /// w ← w + v                                              then to ±clip_weights
    /// ```
    ///
    /// An idle step (`g = 0`) without weight decay makes `n` and `m` smaller and is linear in (w,
    /// v); with weight decay or `clip_weights` it has no closed form.
    ///
    /// Source: Graves, "Generating sequences with recurrent neural networks", arXiv 1308.0850,
    /// equations 38 to 45.
    pub struct CenteredRmsProp = "centered-rmsprop" {
        /// Step size.
        learning_rate: f64 = 0.001, PositiveFinite;
        /// Fraction of the running means kept from step to step.
        rho: f64 = 0.9, BelowOne;
        /// Fraction of the velocity kept from step to step.
        momentum: f64 = 0.9, BelowOne;
        /// Keeps steps finite where gradients do not vary.
        epsilon: f64 = 1e-8, PositiveFinite;
        /// L2 penalty: adds `weight_decay · w` to the gradient.
        weight_decay: f64 = 0.0, AtLeastZero;
        /// Clips each weight to ±this after its step.
        clip_weights: Option<f64> = None, Positive;
    }
    step: CenteredRmsPropStep;
    states: ["n", "m", "v"];
    numbers: |step| [learning_rate: step.learning_rate, rho: step.rho, momentum: step.momentum, epsilon: step.epsilon, decay: step.decay, clip_weights: step.clip_weights];
    gradient: CLIPPED_WITH_DECAY;
    recurrence: [
        n = "rho * n + (1 - rho) * q * q",
        m = "rho * m + (1 - rho) * q",
        v = "momentum * v - learning_rate * q / sqrt(n - m * m + epsilon)",
        w = "max(min(w + v, clip_weights), -clip_weights)",
    ];
    idle: CenteredMap [
        n = "of_means * n",
        m = "of_means * m",
        moved = "ww * w + wv * v",
        v = "vw * w + vv * v",
        w = "moved",
    ];
}

/// [`CenteredRmsProp`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CenteredRmsPropStep<T> {
    learning_rate: T,
    rho: T,
    momentum: T,
    epsilon: T,
    decay: T,
    clip_weights: T,
    preparation: Preparation<T>,
}

impl<T: Float> CenteredRmsPropStep<T> {
    pub(super) fn resolve(
        rule: &CenteredRmsProp,
        learning_rate: f64,
        penalty_scale: f64,
        _: u64,
    ) -> Self {
        CenteredRmsPropStep {
            learning_rate: T::of(learning_rate),
            rho: T::of(rule.rho),
            momentum: T::of(rule.momentum),
            epsilon: T::of(rule.epsilon),
            decay: T::of(rule.weight_decay * penalty_scale),
            clip_weights: T::of(rule.clip_weights.unwrap_or(f64::INFINITY)),
            preparation: Preparation::new(rule.rescale_grad, rule.clip_gradient),
        }
    }
}

/// A linear map on (weight, velocity), and what the two means are multiplied with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CenteredMap {
    /// The linear map.
    pub matrix: MatrixMap,
    /// What the means are multiplied with.
    pub means: f64,
}

impl IdleMap for CenteredMap {
    const IDENTITY: CenteredMap = CenteredMap { matrix: MatrixMap::IDENTITY, means: 1.0 };
    const NUMBERS: &'static [&'static str] = &["ww", "vw", "wv", "vv", "of_means"];

    fn after(&self, first: &CenteredMap) -> CenteredMap {
        CenteredMap { matrix: self.matrix.after(&first.matrix), means: self.means * first.means }
    }

    fn write(&self, numbers: &mut Vec<f64>) {
        self.matrix.write(numbers);
        numbers.push(self.means);
    }

    fn read(numbers: &[f64]) -> Option<Self> {
        let (means, matrix) = numbers.split_last()?;
        Some(CenteredMap { matrix: MatrixMap::read(matrix)?, means: *means })
    }

    fn spares_fresh(&self) -> bool {
        self.matrix.spares_fresh()
    }
}

impl<T: Float> Step<T> for CenteredRmsPropStep<T> {
    /// n, m and v.
    type State = [T; 3];
    type Idle = CenteredMap;

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 3], grad: T) {
        let grad = self.preparation.with_decay(grad, self.decay * *weight);
        let [square, mean, velocity] = *state;
        let square = self.rho * square + (T::one() - self.rho) * grad * grad;
        let mean = self.rho * mean + (T::one() - self.rho) * grad;
        let deviation = (square - mean * mean + self.epsilon).sqrt();
        let velocity = self.momentum * velocity - self.learning_rate * grad / deviation;
        *state = [square, mean, velocity];
        *weight = within(*weight + velocity, self.clip_weights);
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<CenteredMap> {
        if !self.decay.is_zero() || self.clip_weights.is_finite() {
            return Idle::Open;
        }
        let momentum = self.momentum.as_f64();
        let matrix = MatrixMap::of_rows([1.0, momentum], [0.0, momentum]);
        Idle::Closed(CenteredMap { matrix, means: self.rho.as_f64() })
    }

    #[inline]
    fn apply_idle(&self, map: &CenteredMap, weight: &mut T, state: &mut [T; 3]) {
        let [square, mean, velocity] = state.map(|value| value.as_f64());
        let [moved, velocity] = map.matrix.apply([weight.as_f64(), velocity]);
        *weight = T::of(moved);
        let states = [map.means * square, map.means * mean, velocity];
        *state = states.map(T::of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpdateRule;

    #[test]
    fn a_step_by_hand() {
        let rule = CenteredRmsProp { rho: 0.5, momentum: 0.5, epsilon: 3.0, ..Default::default() };
        let (mut w, mut state) = (2.0, [0.0, 0.0, 1.0]);
        rule.step::<f64>(0.5, 1.0, 0).update(&mut w, &mut state, 2.0);
        // n - m² + epsilon = 2 - 1 + 3.
        assert_eq!((w, state), (2.0 + 0.5 - 0.5, [2.0, 1.0, 0.5 - 0.5]));
    }
}
