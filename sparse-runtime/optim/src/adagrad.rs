//! AdaGrad: a rate for each weight, by the squares of its gradients so far.

use super::gradient::{Preparation, soft_threshold};
use super::rule::update_rule;
use super::{Idle, MOST_NUMBERS, ShrinkMap, Step};
use sparse_core::element::Float;

update_rule! {
    /// AdaGrad.
    ///
    /// With `g` the gradient, `q = clip(rescale_grad · g)` to ±`clip_gradient`, and `G` a state
    /// that starts at 0:
    ///
    /// ```text
    /// G ← G + q²
    /// w ← w - learning_rate · (q / √(G + epsilon) + weight_decay · w)
    /// w ← sign(w) · max(0, |w| - learning_rate · l1 / √(G + epsilon))
    /// ```
    ///
    /// An idle step (`g = 0`) leaves `G` alone and shrinks `w`; k of them shrink it once, by a
    /// product of rates and a sum of thresholds. Without penalties it changes nothing.
    ///
    /// Source: Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and
    /// stochastic optimization", JMLR 12 (2011), figure 1, with the proximal step of section 5.1
    /// for `l1`. The weight decay is beside the adaptive step and is not divided by √G.
    pub struct AdaGrad = "adagrad" {
        /// Step size.
        learning_rate: f64 = 0.05, PositiveFinite;
        /// Keeps the first steps finite.
        epsilon: f64 = 1e-7, PositiveFinite;
        /// L2 penalty: the fraction `learning_rate · weight_decay` of a weight is taken off at each
        /// step.
        weight_decay: f64 = 0.0, AtLeastZero;
        /// L1 penalty, as a proximal step: weights become exactly 0.
        l1: f64 = 0.0, AtLeastZero;
    }
    step: AdaGradStep;
    states: ["G"];
    numbers: |step| [learning_rate: step.learning_rate, epsilon: step.epsilon, decay: step.decay, threshold: step.threshold];
    gradient: CLIPPED;
    recurrence: [
        G = "G + q * q",
        root = "sqrt(G + epsilon)",
        moved = "w - (learning_rate * q / root + decay * w)",
        w = "sign(moved) * max(abs(moved) - threshold / root, 0)",
    ];
    idle: ShrinkMap [
        moved = "of_weight * w",
        w = "sign(moved) * max(abs(moved) - of_threshold / sqrt(G + epsilon), 0)",
    ];
}

/// [`AdaGrad`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaGradStep<T> {
    learning_rate: T,
    epsilon: T,
    /// learning_rate · weight_decay.
    decay: T,
    /// learning_rate · l1.
    threshold: T,
    /// Either of the two is not 0.
    penalizes: bool,
    preparation: Preparation<T>,
}

impl<T: Float> AdaGradStep<T> {
    pub(super) fn resolve(rule: &AdaGrad, learning_rate: f64, penalty_scale: f64, _: u64) -> Self {
        let penalty = learning_rate * penalty_scale;
        let (decay, threshold) = (T::of(penalty * rule.weight_decay), T::of(penalty * rule.l1));
        AdaGradStep {
            learning_rate: T::of(learning_rate),
            epsilon: T::of(rule.epsilon),
            decay,
            threshold,
            penalizes: !(decay.is_zero() && threshold.is_zero()),
            preparation: Preparation::new(rule.rescale_grad, rule.clip_gradient),
        }
    }
}

impl<T: Float> Step<T> for AdaGradStep<T> {
    /// G.
    type State = [T; 1];
    /// Its threshold is in units of 1 / √(G + epsilon).
    type Idle = ShrinkMap;

    /// Of G squares are added up.
    const CHANGES_ADD: bool = true;

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 1], grad: T) {
        let grad = self.preparation.apply(grad);
        state[0] += grad * grad;
        let root = (state[0] + self.epsilon).sqrt();
        let change = self.learning_rate * grad / root;
        // The same for all weights of a step.
        if !self.penalizes {
            *weight -= change;
            return;
        }
        let moved = *weight - (change + self.decay * *weight);
        *weight = soft_threshold(moved, self.threshold / root);
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<ShrinkMap> {
        if !self.penalizes {
            return Idle::Nothing;
        }
        let scale = 1.0 - self.decay.as_f64();
        Idle::Closed(ShrinkMap { scale, threshold: self.threshold.as_f64() })
    }

    #[inline]
    fn apply_idle(&self, map: &ShrinkMap, weight: &mut T, state: &mut [T; 1]) {
        let root = (state[0] + self.epsilon).as_f64().sqrt();
        *weight = T::of(soft_threshold(map.scale * weight.as_f64(), map.threshold / root));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpdateRule;

    #[test]
    fn two_steps_by_hand() {
        let rule = AdaGrad { epsilon: 1.0, weight_decay: 0.5, l1: 0.25, ..AdaGrad::default() };
        let step = rule.step::<f64>(0.5, 1.0, 0);
        let (mut w, mut state) = (2.0, [0.0]);
        step.update(&mut w, &mut state, 3.0f64.sqrt());
        let first = 2.0 - 0.5 * (3.0f64.sqrt() / 2.0 + 0.5 * 2.0) - 0.5 * 0.25 / 2.0;
        assert!((w - first).abs() < 1e-15 && (state[0] - 3.0).abs() < 1e-15);
        step.update(&mut w, &mut state, -12.0f64.sqrt());
        let second = first - 0.5 * (-(12.0f64.sqrt()) / 4.0 + 0.5 * first) - 0.5 * 0.25 / 4.0;
        assert!((w - second).abs() < 1e-14 && (state[0] - 15.0).abs() < 1e-14);
    }

    #[test]
    fn without_penalties_an_idle_step_changes_nothing() {
        let step = AdaGrad::default().step::<f32>(0.1, 1.0, 0);
        assert_eq!(Step::<f32>::idle(&step), Idle::Nothing);
        let rule = AdaGrad { weight_decay: 0.1, l1: 0.1, ..AdaGrad::default() };
        assert_eq!(rule.step::<f32>(0.1, 0.0, 0).idle(), Idle::Nothing);
    }
}
