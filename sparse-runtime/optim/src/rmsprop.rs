//! RMSProp: steps divided by the root of a running mean of squares.

use super::gradient::{Preparation, within};
use super::rule::update_rule;
use super::{Idle, MOST_NUMBERS, ScaleMap, Step};
use sparse_core::element::Float;

update_rule! {
    /// RMSProp.
    ///
    /// With `g` the gradient, and `n` a state that starts at 0:
    ///
    /// ```text
    /// q ← clip(rescale_grad · g + weight_decay · w)          to ±clip_gradient
    /// n ← rho · n + (1 - rho) · q²
    /// w ← w - learning_rate · q / √(n + epsilon)             then to ±clip_weights
    /// ```
    ///
    /// An idle step (`g = 0`) without weight decay makes `n` smaller and leaves `w` alone; with
    /// weight decay it has no closed form.
    ///
    /// Source: Tieleman and Hinton, "Neural networks for machine learning", lecture 6.5, 2012.
    pub struct RmsProp = "rmsprop" {
        /// Step size.
        learning_rate: f64 = 0.001, PositiveFinite;
        /// Fraction of the mean square kept from step to step.
        rho: f64 = 0.9, BelowOne;
        /// Keeps steps finite where gradients vanish.
        epsilon: f64 = 1e-8, PositiveFinite;
        /// L2 penalty: adds `weight_decay · w` to the gradient.
        weight_decay: f64 = 0.0, AtLeastZero;
        /// Clips each weight to ±this after its step.
        clip_weights: Option<f64> = None, Positive;
    }
    step: RmsPropStep;
    states: ["n"];
    numbers: |step| [learning_rate: step.learning_rate, rho: step.rho, epsilon: step.epsilon, decay: step.decay, clip_weights: step.clip_weights];
    gradient: CLIPPED_WITH_DECAY;
    recurrence: [
        n = "rho * n + (1 - rho) * q * q",
        moved = "w - learning_rate * q / sqrt(n + epsilon)",
        w = "max(min(moved, clip_weights), -clip_weights)",
    ];
    idle: ScaleMap [
        w = "of_weight * w",
        n = "of_state * n",
    ];
}

/// [`RmsProp`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsPropStep<T> {
    learning_rate: T,
    rho: T,
    epsilon: T,
    decay: T,
    clip_weights: T,
    preparation: Preparation<T>,
}

impl<T: Float> RmsPropStep<T> {
    pub(super) fn resolve(rule: &RmsProp, learning_rate: f64, penalty_scale: f64, _: u64) -> Self {
        RmsPropStep {
            learning_rate: T::of(learning_rate),
            rho: T::of(rule.rho),
            epsilon: T::of(rule.epsilon),
            decay: T::of(rule.weight_decay * penalty_scale),
            clip_weights: T::of(rule.clip_weights.unwrap_or(f64::INFINITY)),
            preparation: Preparation::new(rule.rescale_grad, rule.clip_gradient),
        }
    }
}

impl<T: Float> Step<T> for RmsPropStep<T> {
    type State = [T; 1];
    type Idle = ScaleMap;

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 1], grad: T) {
        let grad = self.preparation.with_decay(grad, self.decay * *weight);
        state[0] = self.rho * state[0] + (T::one() - self.rho) * grad * grad;
        let moved = *weight - self.learning_rate * grad / (state[0] + self.epsilon).sqrt();
        *weight = within(moved, self.clip_weights);
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<ScaleMap> {
        // A weight that starts outside of the bound is not where an idle step leaves it.
        if !self.decay.is_zero() || self.clip_weights.is_finite() {
            return Idle::Open;
        }
        Idle::Closed(ScaleMap { weight: 1.0, state: self.rho.as_f64() })
    }

    #[inline]
    fn apply_idle(&self, map: &ScaleMap, weight: &mut T, state: &mut [T; 1]) {
        map.apply(weight, state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpdateRule;

    #[test]
    fn two_steps_by_hand() {
        let rule = RmsProp { rho: 0.5, epsilon: 1.0, ..RmsProp::default() };
        let step = rule.step::<f64>(0.5, 1.0, 0);
        let (mut w, mut state) = (2.0, [0.0]);
        step.update(&mut w, &mut state, 6.0f64.sqrt());
        let first = 2.0 - 0.5 * 6.0f64.sqrt() / 2.0;
        assert!((state[0] - 3.0).abs() < 1e-14 && (w - first).abs() < 1e-14);
        step.update(&mut w, &mut state, -1.0);
        assert!(
            (state[0] - 2.0).abs() < 1e-14 && (w - (first + 0.5 / 3.0f64.sqrt())).abs() < 1e-14
        );
        let bounded = RmsProp { clip_weights: Some(0.25), ..rule };
        bounded.step::<f64>(0.5, 1.0, 0).update(&mut w, &mut state, -1.0);
        assert_eq!(w, 0.25);
    }
}
