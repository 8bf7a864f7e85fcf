//! Delay-compensated SGD: gradients corrected for how far weights have moved since they were
//! computed.

use super::gradient::Preparation;
use super::rule::update_rule;
use super::{Idle, MOST_NUMBERS, MatrixMap, Step};
use sparse_core::element::Float;

update_rule! {
    /// Stochastic gradient descent with a correction for delays.
    ///
    /// With `g` the gradient, `q = clip(rescale_grad · g)` to ±`clip_gradient`, and `v` a state
    /// that starts at 0, by which the weight moved last:
    ///
    /// ```text
    /// v ← momentum · v - learning_rate · (q + weight_decay · w + lambda · q² · v)
    ///                                                        with the old v
    /// w ← w + v
    /// ```
    ///
    /// `q²` stands for the curvature of the loss, as a diagonal: `lambda · q² · v` is by how much a
    /// gradient that was computed one step ago has changed since. Gradients here are not late, so
    /// that it damps steps that go on in one direction, where the loss is steep.
    ///
    /// An idle step (`g = 0`) is linear in (w, v), as of [`Sgd`](super::Sgd) with momentum.
    ///
    /// Source: Zheng et al., "Asynchronous stochastic gradient descent with delay compensation",
    /// ICML 2017, equation 10, with the weights of one step ago as those that the gradient is of;
    /// `DCASGD` of MXNet.
    pub struct DcAsgd = "dcasgd" {
        /// Step size.
        learning_rate: f64 = 0.01, PositiveFinite;
        /// Fraction of the last change kept from step to step.
        momentum: f64 = 0.0, BelowOne;
        /// How much of the estimated change of the gradient is made up for.
        lambda: f64 = 0.04, AtLeastZero;
        /// L2 penalty: adds `weight_decay · w` to the gradient.
        weight_decay: f64 = 0.0, AtLeastZero;
    }
    step: DcAsgdStep;
    states: ["v"];
    numbers: |step| [learning_rate: step.learning_rate, momentum: step.momentum, lambda: step.lambda, decay: step.decay];
    gradient: CLIPPED;
    recurrence: [
        v = "momentum * v - (learning_rate * (q + lambda * q * q * v) + decay * w)",
        w = "w + v",
    ];
    idle: MatrixMap [
        moved = "ww * w + wv * v",
        v = "vw * w + vv * v",
        w = "moved",
    ];
}

/// [`DcAsgd`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DcAsgdStep<T> {
    learning_rate: T,
    momentum: T,
    lambda: T,
    /// learning_rate · weight_decay.
    decay: T,
    preparation: Preparation<T>,
}

impl<T: Float> DcAsgdStep<T> {
    pub(super) fn resolve(rule: &DcAsgd, learning_rate: f64, penalty_scale: f64, _: u64) -> Self {
        DcAsgdStep {
            learning_rate: T::of(learning_rate),
            momentum: T::of(rule.momentum),
            lambda: T::of(rule.lambda),
            decay: T::of(learning_rate * rule.weight_decay * penalty_scale),
            preparation: Preparation::new(rule.rescale_grad, rule.clip_gradient),
        }
    }
}

impl<T: Float> Step<T> for DcAsgdStep<T> {
    /// v.
    type State = [T; 1];
    type Idle = MatrixMap;

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 1], grad: T) {
        let grad = self.preparation.apply(grad);
        let compensated = grad + self.lambda * grad * grad * state[0];
        let delta = self.learning_rate * compensated + self.decay * *weight;
        state[0] = self.momentum * state[0] - delta;
        *weight += state[0];
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<MatrixMap> {
        let (momentum, decay) = (self.momentum.as_f64(), self.decay.as_f64());
        Idle::Closed(MatrixMap::of_rows([1.0 - decay, momentum], [-decay, momentum]))
    }

    #[inline]
    fn apply_idle(&self, map: &MatrixMap, weight: &mut T, state: &mut [T; 1]) {
        let [w, v] = map.apply([weight.as_f64(), state[0].as_f64()]);
        (*weight, state[0]) = (T::of(w), T::of(v));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sgd, UpdateRule};

    #[test]
    fn steps_by_hand() {
        let rule = DcAsgd { lambda: 0.5, weight_decay: 0.25, ..DcAsgd::default() };
        let step = rule.step::<f64>(0.5, 1.0, 0);
        let (mut w, mut state) = (2.0, [0.0]);
        step.update(&mut w, &mut state, 3.0);
        assert_eq!((w, state), (2.0 - 0.5 * 3.5, [-1.75]));
        step.update(&mut w, &mut state, 2.0);
        let change = -0.5 * (2.0 + 0.25 * 0.25 - 0.5 * 4.0 * 1.75);
        assert_eq!((w, state), (0.25 + change, [change]));
    }

    #[test]
    fn without_compensation_it_is_momentum() {
        let rule = DcAsgd { lambda: 0.0, momentum: 0.5, weight_decay: 0.25, ..DcAsgd::default() };
        let other = Sgd { momentum: 0.5, weight_decay: 0.25, ..Sgd::default() };
        let (mut a, mut b) = ((2.0, [0.0]), (2.0, [0.0]));
        for grad in [1.0, -0.5, 0.0, 2.0] {
            rule.step::<f64>(0.125, 1.0, 0).update(&mut a.0, &mut a.1, grad);
            other.step::<f64>(0.125, 1.0, 0).update(&mut b.0, &mut b.1, grad);
            assert_eq!(a, b);
        }
    }
}
