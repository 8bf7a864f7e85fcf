//! Stochastic gradient descent with momentum, weight decay and an L1 penalty.

use super::gradient::{Preparation, soft_threshold};
use super::rule::update_rule;
use super::{DriftMap, Idle, IdleMap, MOST_NUMBERS, MatrixMap, Step};
use sparse_core::element::Float;

update_rule! {
    /// Stochastic gradient descent.
    ///
    /// With `g` the gradient, `q = clip(rescale_grad · g)` to ±`clip_gradient`, and `v` a state
    /// that starts at 0:
    ///
    /// ```text
    /// momentum = 0:  w ← w - learning_rate · (q + weight_decay · w)
    /// momentum > 0:  v ← momentum · v - learning_rate · (q + weight_decay · w)
    ///                w ← w + v
    /// nesterov:      w ← w + momentum · v - learning_rate · (q + weight_decay · w)
    ///                                                        with the new v
    /// l1 > 0, then:  w ← sign(w) · max(0, |w| - learning_rate · l1)
    /// ```
    ///
    /// An idle step (`g = 0`) is linear in (w, v), so that k of them are one 2 × 2 matrix power,
    /// and shrinks w without momentum: exact sparse updates cost O(rows touched). Momentum and `l1`
    /// together have no closed form.
    ///
    /// Of the three formulas for weight decay in circulation this is the one in which clipping
    /// leaves the decay alone and the learning rate scales both.
    ///
    /// Source of `nesterov`: Sutskever, Martens, Dahl and Hinton, "On the importance of
    /// initialization and momentum in deep learning", ICML 2013, with the weight after the look
    /// ahead as `w`.
    pub struct Sgd = "sgd" {
        /// Step size.
        learning_rate: f64 = 0.01, PositiveFinite;
        /// Fraction of the velocity kept from step to step.
        momentum: f64 = 0.0, BelowOne;
        /// Whether a step looks ahead along the velocity.
        nesterov: bool = false, Flag;
        /// L2 penalty: adds `weight_decay · w` to the gradient.
        weight_decay: f64 = 0.0, AtLeastZero;
        /// L1 penalty, as a proximal step: weights become exactly 0.
        l1: f64 = 0.0, AtLeastZero;
    }
    step: SgdStep;
    states: ["velocity"];
    numbers: |step| [learning_rate: step.learning_rate, momentum: step.momentum, nesterov: step.nesterov, decay: step.decay, threshold: step.threshold];
    gradient: CLIPPED;
    recurrence: [
        delta = "learning_rate * q + decay * w",
        change = "momentum * velocity - delta",
        velocity = "select(momentum, change, velocity)",
        moved = "w + select(nesterov, momentum * change - delta, change)",
        w = "sign(moved) * max(abs(moved) - threshold, 0)",
    ];
    idle: SgdMap [
        moved = "ww * w + wv * velocity",
        velocity = "vw * w + vv * velocity",
        w = "sign(moved) * max(abs(moved) - of_threshold, 0)",
    ];
    drift: DriftMap [
        moved = "ww * w + wv * velocity + wq * q",
        velocity = "vw * w + vv * velocity + vq * q",
        w = "moved",
    ];
}

/// [`Sgd`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SgdStep<T> {
    learning_rate: T,
    momentum: T,
    nesterov: bool,
    /// learning_rate · weight_decay.
    decay: T,
    /// learning_rate · l1.
    threshold: T,
    preparation: Preparation<T>,
    /// Momentum and nothing else: fewer operations between a gradient and its weight, for which the
    /// next step may wait.
    only_momentum: bool,
}

impl<T: Float> SgdStep<T> {
    pub(super) fn resolve(rule: &Sgd, learning_rate: f64, penalty_scale: f64, _: u64) -> Self {
        let penalty = learning_rate * penalty_scale;
        let preparation = Preparation::new(rule.rescale_grad, rule.clip_gradient);
        let penalised = penalty * rule.weight_decay != 0.0 || penalty * rule.l1 != 0.0;
        let chosen = penalised || rule.nesterov || !preparation.is_identity();
        SgdStep {
            only_momentum: rule.momentum != 0.0 && !chosen,
            learning_rate: T::of(learning_rate),
            momentum: T::of(rule.momentum),
            nesterov: rule.nesterov,
            decay: T::of(penalty * rule.weight_decay),
            threshold: T::of(penalty * rule.l1),
            preparation,
        }
    }

    /// The step on (weight, velocity), before the threshold, for a prepared gradient of 0 and of 1:
    /// it is linear in the three. Without momentum there is no velocity, which stays as it is.
    fn linear(&self) -> DriftMap {
        let (momentum, decay) = (self.momentum.as_f64(), self.decay.as_f64());
        let rate = self.learning_rate.as_f64();
        if momentum == 0.0 {
            return DriftMap::of_scalar([1.0 - decay, -rate]);
        }
        let (weight, along) = if self.nesterov {
            let ahead = 1.0 + momentum;
            ([1.0 - ahead * decay, momentum * momentum], -ahead * rate)
        } else {
            ([1.0 - decay, momentum], -rate)
        };
        DriftMap { matrix: MatrixMap::of_rows(weight, [-decay, momentum]), drift: [along, -rate] }
    }
}

/// What idle steps do to (weight, velocity): a linear map, then the proximal step of an L1 penalty.
///
/// Closed under composition where the threshold is 0 or the weight does not depend on the velocity,
/// as `max(0, a · max(0, x) - b) = max(0, a · x - b)` for `a, b ≥ 0`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SgdMap {
    /// The linear map.
    pub matrix: MatrixMap,
    /// What the magnitude of the weight then loses, ≥ 0.
    pub threshold: f64,
}

impl IdleMap for SgdMap {
    const IDENTITY: SgdMap = SgdMap { matrix: MatrixMap::IDENTITY, threshold: 0.0 };
    const NUMBERS: &'static [&'static str] = &["ww", "vw", "wv", "vv", "of_threshold"];

    #[inline]
    fn after(&self, first: &SgdMap) -> SgdMap {
        let scale = self.matrix.0[0][0].abs();
        SgdMap {
            matrix: self.matrix.after(&first.matrix),
            threshold: scale * first.threshold + self.threshold,
        }
    }

    fn write(&self, numbers: &mut Vec<f64>) {
        self.matrix.write(numbers);
        numbers.push(self.threshold);
    }

    fn read(numbers: &[f64]) -> Option<Self> {
        let (threshold, matrix) = numbers.split_last()?;
        Some(SgdMap { matrix: MatrixMap::read(matrix)?, threshold: *threshold })
    }

    const HAS_SCALARS: bool = true;
    const MOSTLY_SCALARS: bool = true;

    /// Decay alone scales the weight. Momentum alone scales the velocity, and is the shift of the
    /// weight along it.
    #[inline]
    fn scalar(&self) -> Option<[f64; 2]> {
        let scalar = self.matrix.scale().map(|scale| [scale, 0.0]);
        scalar.or_else(|| self.matrix.glide()).filter(|_| self.threshold == 0.0)
    }

    #[inline(always)]
    fn of_scalar([scale, shift]: [f64; 2]) -> Self {
        let matrix = match shift {
            0.0 => MatrixMap::of_scale(scale),
            _ => MatrixMap::of_glide([scale, shift]),
        };
        SgdMap { matrix, threshold: 0.0 }
    }

    fn spares_fresh(&self) -> bool {
        self.threshold == 0.0 && self.matrix.spares_fresh()
    }
}

impl<T: Float> Step<T> for SgdStep<T> {
    type State = [T; 1];
    type Idle = SgdMap;

    const OPTIONAL_STATE: bool = true;

    #[inline(always)]
    fn uses_state(&self) -> bool {
        self.momentum != T::zero()
    }

    const HAS_OPTIONS: bool = true;

    #[inline(always)]
    fn without_options(self) -> Option<Self> {
        self.only_momentum.then_some(SgdStep {
            nesterov: false,
            decay: T::zero(),
            threshold: T::zero(),
            preparation: Preparation::new(1.0, None),
            only_momentum: true,
            ..self
        })
    }

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 1], grad: T) {
        // Before the choices, which are the same for all weights of a step: it need not wait for
        // the gradient, and is not put into one vector with what has to.
        let kept = self.momentum * state[0];
        if self.only_momentum {
            state[0] = kept - self.learning_rate * grad;
            *weight += state[0];
            return;
        }
        let grad = self.preparation.apply(grad);
        let delta = self.learning_rate * grad + self.decay * *weight;
        if self.uses_state() {
            state[0] = kept - delta;
            *weight += if self.nesterov { self.momentum * state[0] - delta } else { state[0] };
        } else {
            *weight -= delta;
        }
        if !self.threshold.is_zero() {
            *weight = soft_threshold(*weight, self.threshold);
        }
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<SgdMap> {
        let threshold = self.threshold.as_f64();
        if !self.uses_state() && self.decay.is_zero() && threshold == 0.0 {
            return Idle::Nothing;
        }
        if self.uses_state() && threshold != 0.0 {
            return Idle::Open;
        }
        let matrix = self.linear().matrix;
        Idle::Closed(SgdMap { matrix, threshold })
    }

    #[inline]
    fn apply_idle(&self, map: &SgdMap, weight: &mut T, state: &mut [T; 1]) {
        // The same for all weights. With momentum there is no threshold, see `idle`.
        if self.only_momentum || self.uses_state() {
            let [w, v] = map.matrix.apply([weight.as_f64(), state[0].as_f64()]);
            (*weight, state[0]) = (T::of(w), T::of(v));
        } else {
            let moved = map.matrix.0[0][0] * weight.as_f64();
            *weight = T::of(soft_threshold(moved, map.threshold));
        }
    }

    /// Of steps without threshold that have no velocity, or nothing but that.
    #[inline(always)]
    fn apply_scalar(&self, [scale, shift]: [T; 2], weight: &mut T, state: &mut [T; 1]) {
        // The same for all weights.
        if self.only_momentum || self.uses_state() {
            *weight += shift * state[0];
            state[0] *= scale;
        } else {
            *weight *= scale;
        }
    }

    fn drift(&self) -> Option<DriftMap> {
        // A threshold under a constant force has no closed form of this kind.
        self.threshold.is_zero().then(|| self.linear())
    }

    fn affine_update(&self) -> Option<(T, T)> {
        let affine =
            !self.uses_state() && self.threshold.is_zero() && self.preparation.is_identity();
        affine.then(|| (T::one() - self.decay, self.learning_rate))
    }

    #[inline(always)]
    fn apply_drift(&self, map: &DriftMap, weight: &mut T, state: &mut [T; 1], grad: T) {
        let (w, g) = (weight.as_f64(), self.preparation.apply(grad).as_f64());
        let [dw, dv] = map.drift;
        // The same for all weights.
        if self.uses_state() {
            let [moved, v] = map.matrix.apply([w, state[0].as_f64()]);
            (*weight, state[0]) = (T::of(moved + dw * g), T::of(v + dv * g));
        } else {
            *weight = T::of(map.matrix.0[0][0] * w + dw * g);
        }
    }

    #[inline]
    fn gradient_factor(&self) -> Option<T> {
        let plain = self.momentum.is_zero()
            && self.decay.is_zero()
            && self.threshold.is_zero()
            && self.preparation.is_identity();
        plain.then(|| -self.learning_rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpdateRule;

    #[test]
    fn a_look_ahead_by_hand() {
        let rule = Sgd { momentum: 0.5, nesterov: true, weight_decay: 0.5, ..Sgd::default() };
        let step = rule.step::<f64>(0.25, 1.0, 0);
        let (mut w, mut state) = (2.0, [1.0]);
        step.update(&mut w, &mut state, 3.0);
        // The change by the gradient is 0.25 · (3 + 0.5 · 2) = 1.
        assert_eq!((w, state), (2.0 + 0.5 * -0.5 - 1.0, [0.5 * 1.0 - 1.0]));
    }

    #[test]
    fn two_numbers_are_all_there_is_to_momentum_or_decay() {
        let rules = [
            Sgd { momentum: 0.75, ..Sgd::default() },
            Sgd { momentum: 0.75, nesterov: true, ..Sgd::default() },
            Sgd { weight_decay: 0.25, ..Sgd::default() },
        ];
        for rule in rules {
            let step = rule.step::<f64>(0.5, 1.0, 0);
            let Idle::Closed(map) = step.idle() else { panic!("idle steps have a map") };
            let first = map.scalar().unwrap();
            let (mut scalar, mut power) = (first, map);
            for _ in 0..5 {
                assert_eq!((power.scalar(), SgdMap::of_scalar(scalar)), (Some(scalar), power));
                let (mut by_map, mut by_scalar) = ((2.0, [-0.5]), (2.0, [-0.5]));
                step.apply_idle(&power, &mut by_map.0, &mut by_map.1);
                step.apply_scalar(scalar, &mut by_scalar.0, &mut by_scalar.1);
                assert_eq!(by_map, by_scalar);
                scalar = [first[0] * scalar[0], first[0] * scalar[1] + first[1]];
                power = map.after(&power);
            }
        }
        let both =
            Sgd { momentum: 0.5, weight_decay: 0.5, ..Sgd::default() }.step::<f64>(0.5, 1.0, 0);
        let Idle::Closed(map) = both.idle() else { panic!("idle steps have a map") };
        assert_eq!(map.scalar(), None);
    }

    #[test]
    fn an_l1_penalty_makes_zeros() {
        let step = Sgd { l1: 0.5, ..Sgd::default() }.step::<f64>(0.5, 1.0, 0);
        for (mut w, grad, expected) in [(1.0, 1.0, 0.25), (-1.0, 0.0, -0.75), (0.5, 0.75, 0.0)] {
            step.update(&mut w, &mut [0.0], grad);
            assert_eq!(w, expected);
        }
        let message = Sgd { l1: 0.5, momentum: 0.5, ..Sgd::default() }.check().unwrap_err();
        assert!(message.to_string().contains("no closed form"), "{message}");
    }

    #[test]
    fn the_shortcut_is_the_update_to_the_bit() {
        let step = Sgd::default().step::<f32>(0.37, 1.0, 0);
        let factor = step.gradient_factor().unwrap();
        for (w, g) in [(0.1f32, 0.3f32), (-7.3, 1e-8), (0.0, -2.5), (1e20, 3.0)] {
            let mut updated = w;
            step.update(&mut updated, &mut [0.0], g);
            assert_eq!(updated.to_bits(), (w + factor * g).to_bits());
        }
        for rule in [
            Sgd { momentum: 0.5, ..Sgd::default() },
            Sgd { weight_decay: 0.5, ..Sgd::default() },
            Sgd { l1: 0.5, ..Sgd::default() },
            Sgd { clip_gradient: Some(1.0), ..Sgd::default() },
            Sgd { rescale_grad: 0.5, ..Sgd::default() },
        ] {
            assert_eq!(rule.step::<f32>(0.1, 1.0, 0).gradient_factor(), None);
        }
    }

    #[test]
    fn without_options_is_the_same_to_the_bit() {
        let rule = Sgd { momentum: 0.9, ..Sgd::default() };
        let step = rule.step::<f32>(0.37, 1.0, 0);
        let short = step.without_options().unwrap();
        let Idle::Closed(map) = step.idle() else { panic!("{:?}", step.idle()) };
        for (w, v, g) in [(0.1f32, 0.3f32, 2.5f32), (-7.3, 1e-8, -0.1), (0.0, -2.5, 0.0)] {
            let (mut a, mut b) = ((w, [v]), (w, [v]));
            step.update(&mut a.0, &mut a.1, g);
            short.update(&mut b.0, &mut b.1, g);
            step.apply_idle(&map, &mut a.0, &mut a.1);
            short.apply_idle(&map, &mut b.0, &mut b.1);
            assert_eq!((a.0.to_bits(), a.1[0].to_bits()), (b.0.to_bits(), b.1[0].to_bits()));
        }
        for rule in [
            Sgd { nesterov: true, ..rule.clone() },
            Sgd { weight_decay: 0.5, ..rule.clone() },
            Sgd { clip_gradient: Some(1.0), ..rule.clone() },
            Sgd { rescale_grad: 0.5, ..rule.clone() },
            Sgd::default(),
        ] {
            assert_eq!(rule.step::<f32>(0.1, 1.0, 0).without_options(), None);
        }
    }

    #[test]
    fn clipping_leaves_weight_decay_alone() {
        let rule = Sgd { weight_decay: 0.5, clip_gradient: Some(1.0), ..Sgd::default() };
        let step = rule.step::<f64>(0.1, 1.0, 0);
        let mut w = 2.0;
        step.update(&mut w, &mut [0.0], 100.0);
        assert_eq!(w, 2.0 - 0.1 * (1.0 + 0.5 * 2.0));
    }

    #[test]
    fn senseless_hyperparameters_are_refused_by_name() {
        let bad = Sgd { momentum: 1.0, ..Sgd::default() };
        assert_eq!(
            bad.check().unwrap_err().to_string(),
            "sgd: `momentum` is 1, but must be in [0, 1)"
        );
        assert!(Sgd { learning_rate: f64::NAN, ..Sgd::default() }.check().is_err());
        assert!(Sgd { clip_gradient: Some(0.0), ..Sgd::default() }.check().is_err());
    }
}
