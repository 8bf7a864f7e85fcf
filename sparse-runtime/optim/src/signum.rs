//! Signum: steps of one length, in the direction of the sign.

use super::gradient::Preparation;
use super::rule::update_rule;
use super::{Idle, IdleMap, MOST_NUMBERS, Step};
use sparse_core::element::Float;

update_rule! {
    /// Signum: SGD by the signs of gradients, or of their running mean.
    ///
    /// With `g` the gradient, `q = clip(rescale_grad · g)` to ±`clip_gradient`, and `m` a state
    /// that starts at 0:
    ///
    /// ```text
    /// momentum = 0:  w ← w - learning_rate · (sign(q) + weight_decay · w)
    /// momentum > 0:  m ← momentum · m - (1 - momentum) · (q + weight_decay · w)
    ///                w ← w + learning_rate · (sign(m) - decoupled_decay · w)
    /// ```
    ///
    /// The sign of 0 is 0. An idle step (`g = 0`) without weight decay leaves the sign of `m`
    /// alone, so that k of them shrink the weight and add a sum of rates; `weight_decay` with
    /// momentum has no closed form.
    ///
    /// Source: Bernstein, Wang, Azizzadenesheli and Anandkumar, "signSGD: compressed optimisation
    /// for non-convex problems", ICML 2018.
    pub struct Signum = "signum" {
        /// Step size.
        learning_rate: f64 = 0.01, PositiveFinite;
        /// Fraction of the running mean kept from step to step.
        momentum: f64 = 0.9, BelowOne;
        /// L2 penalty: adds `weight_decay · w` to what the mean is made of, or to the sign without
        /// momentum.
        weight_decay: f64 = 0.0, AtLeastZero;
        /// With momentum, the fraction `learning_rate · decoupled_decay` of a weight is taken off
        /// at each step.
        decoupled_decay: f64 = 0.0, AtLeastZero;
    }
    step: SignumStep;
    states: ["m"];
    numbers: |step| [learning_rate: step.learning_rate, momentum: step.momentum, weight_decay: step.weight_decay, shrinkage: step.shrinkage, least: T::min_positive_value()];
    gradient: CLIPPED;
    recurrence: [
        m = "momentum * m - (1 - momentum) * (q + weight_decay * w)",
        direction = "select(momentum, sign(m), -sign(q))",
        w = "w + (learning_rate * direction - shrinkage * w)",
    ];
    idle: SignMap [
        w = "scale * w + shift * sign(m)",
        m = "sign(m) * max(keep * abs(m), least)",
    ];
}

/// [`Signum`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignumStep<T> {
    learning_rate: T,
    momentum: T,
    /// weight_decay, as the mean sees it.
    weight_decay: T,
    /// What is taken off a weight: learning_rate · weight_decay without momentum, else
    /// learning_rate · decoupled_decay.
    shrinkage: T,
    preparation: Preparation<T>,
}

impl<T: Float> SignumStep<T> {
    pub(super) fn resolve(rule: &Signum, learning_rate: f64, penalty_scale: f64, _: u64) -> Self {
        let beside = if rule.momentum == 0.0 { rule.weight_decay } else { rule.decoupled_decay };
        SignumStep {
            learning_rate: T::of(learning_rate),
            momentum: T::of(rule.momentum),
            weight_decay: T::of(rule.weight_decay * penalty_scale),
            shrinkage: T::of(learning_rate * beside * penalty_scale),
            preparation: Preparation::new(rule.rescale_grad, rule.clip_gradient),
        }
    }
}

/// -1, 0 or 1; NaN stays NaN.
#[inline(always)]
fn sign<T: Float>(value: T) -> T {
    if value.is_zero() { T::zero() } else { value.signum() }
}

/// `w ← scale · w + shift · sign(m)` and `m ← keep · m`, with `keep ≥ 0`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignMap {
    /// What the weight is multiplied with.
    pub scale: f64,
    /// What the weight then moves in the direction of the mean.
    pub shift: f64,
    /// What the mean is multiplied with.
    pub keep: f64,
}

impl IdleMap for SignMap {
    const IDENTITY: SignMap = SignMap { scale: 1.0, shift: 0.0, keep: 1.0 };
    const NUMBERS: &'static [&'static str] = &["scale", "shift", "keep"];

    fn after(&self, first: &SignMap) -> SignMap {
        SignMap {
            scale: self.scale * first.scale,
            shift: self.scale * first.shift + self.shift,
            keep: self.keep * first.keep,
        }
    }

    fn write(&self, numbers: &mut Vec<f64>) {
        numbers.extend([self.scale, self.shift, self.keep]);
    }

    fn read(numbers: &[f64]) -> Option<Self> {
        let &[scale, shift, keep] = numbers else { return None };
        Some(SignMap { scale, shift, keep })
    }

    fn spares_fresh(&self) -> bool {
        self.scale == 1.0
    }
}

impl<T: Float> Step<T> for SignumStep<T> {
    type State = [T; 1];
    type Idle = SignMap;

    const OPTIONAL_STATE: bool = true;

    #[inline(always)]
    fn uses_state(&self) -> bool {
        !self.momentum.is_zero()
    }

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 1], grad: T) {
        let grad = self.preparation.apply(grad);
        let direction = if self.uses_state() {
            let taken = (T::one() - self.momentum) * (grad + self.weight_decay * *weight);
            state[0] = self.momentum * state[0] - taken;
            sign(state[0])
        } else {
            -sign(grad)
        };
        *weight += self.learning_rate * direction - self.shrinkage * *weight;
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<SignMap> {
        let scale = 1.0 - self.shrinkage.as_f64();
        if self.uses_state() {
            if !self.weight_decay.is_zero() {
                return Idle::Open;
            }
            let (shift, keep) = (self.learning_rate.as_f64(), self.momentum.as_f64());
            return Idle::Closed(SignMap { scale, shift, keep });
        }
        if self.shrinkage.is_zero() {
            Idle::Nothing
        } else {
            Idle::Closed(SignMap { scale, shift: 0.0, keep: 1.0 })
        }
    }

    #[inline]
    fn apply_idle(&self, map: &SignMap, weight: &mut T, state: &mut [T; 1]) {
        let mean = state[0].as_f64();
        *weight = T::of(map.scale * weight.as_f64() + map.shift * sign(mean));
        let kept = T::of(map.keep * mean);
        // A mean never quite vanishes: its sign counts.
        let vanished = kept.is_zero() && !state[0].is_zero();
        state[0] = if vanished { T::min_positive_value().copysign(state[0]) } else { kept };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpdateRule;

    #[test]
    fn steps_by_hand() {
        let rule = Signum { momentum: 0.5, decoupled_decay: 0.5, ..Signum::default() };
        let step = rule.step::<f64>(0.25, 1.0, 0);
        let (mut w, mut state) = (2.0, [0.0]);
        step.update(&mut w, &mut state, 3.0);
        assert_eq!((w, state), (2.0 - 0.25 - 0.25 * 0.5 * 2.0, [-1.5]));
        step.update(&mut w, &mut state, -1.0);
        assert_eq!((w, state), (1.5 - 0.25 - 0.25 * 0.5 * 1.5, [-0.25]));
        let rule = Signum { momentum: 0.0, weight_decay: 0.5, ..Signum::default() };
        let step = rule.step::<f64>(0.25, 1.0, 0);
        for (grad, expected) in [(0.0, 1.75), (-7.0, 2.0), (1e-30, 1.5)] {
            let mut w = 2.0;
            step.update(&mut w, &mut [0.0], grad);
            assert_eq!(w, expected);
        }
    }

    #[test]
    fn a_mean_keeps_its_sign() {
        let step = Signum::default().step::<f32>(0.1, 1.0, 0);
        let Idle::Closed(map) = step.idle() else { panic!("{step:?}") };
        let (mut w, mut state) = (0.0, [-1.0]);
        step.apply_idle(&map.power(2000), &mut w, &mut state);
        assert!(state[0] < 0.0 && (w + 200.0).abs() < 1e-3, "{w} {state:?}");
    }
}
