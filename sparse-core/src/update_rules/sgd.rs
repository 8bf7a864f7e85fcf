//! Stochastic gradient descent with momentum, weight decay, clipping and rescaling.

use super::{IdleMap, InvalidHyperparameter, LazyUpdate, Step, UpdateRule};
use crate::element::Float;

/// Stochastic gradient descent.
///
/// With `g` the gradient, `q = clip(rescale_grad · g)` to ±`clip_gradient`:
///
/// ```text
/// momentum = 0:  w ← w - learning_rate · (q + weight_decay · w)
/// momentum > 0:  v ← momentum · v - learning_rate · (q + weight_decay · w);   w ← w + v
/// ```
///
/// An idle step (`g = 0`) is linear in (w, v), so that k of them are one 2 × 2 matrix power: exact sparse
/// updates cost O(rows touched).
///
/// Of the three formulas for weight decay in circulation this is the one in which clipping leaves the
/// decay alone and the learning rate scales both.
#[derive(Clone, Debug, PartialEq)]
pub struct Sgd {
    /// Step size, > 0.
    pub learning_rate: f64,
    /// Fraction of the velocity kept from step to step, in [0, 1).
    pub momentum: f64,
    /// L2 penalty: adds `weight_decay · w` to the gradient, ≥ 0.
    pub weight_decay: f64,
    /// Clips each element of the rescaled gradient to ±this, > 0.
    pub clip_gradient: Option<f64>,
    /// Multiplies the gradient before clipping. The gradient of a loss is already a mean over the batch.
    pub rescale_grad: f64,
    /// How row_sparse gradients are applied.
    pub lazy_update: LazyUpdate,
}

impl Default for Sgd {
    fn default() -> Self {
        Sgd {
            learning_rate: 0.01,
            momentum: 0.0,
            weight_decay: 0.0,
            clip_gradient: None,
            rescale_grad: 1.0,
            lazy_update: LazyUpdate::Exact,
        }
    }
}

impl UpdateRule for Sgd {
    const NAME: &'static str = "sgd";

    type Step<T: Float> = SgdStep<T>;

    fn check(&self) -> Result<(), InvalidHyperparameter> {
        let refuse = |name, value, bound| {
            Err(InvalidHyperparameter { rule: Self::NAME, name, value, bound })
        };
        // Written so that NaN is refused.
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return refuse("learning_rate", self.learning_rate, "positive and finite");
        }
        if !(self.momentum >= 0.0 && self.momentum < 1.0) {
            return refuse("momentum", self.momentum, "in [0, 1)");
        }
        if !(self.weight_decay >= 0.0 && self.weight_decay.is_finite()) {
            return refuse("weight_decay", self.weight_decay, "at least 0 and finite");
        }
        if !self.rescale_grad.is_finite() {
            return refuse("rescale_grad", self.rescale_grad, "finite");
        }
        match self.clip_gradient {
            Some(clip) if clip <= 0.0 || clip.is_nan() => refuse("clip_gradient", clip, "positive"),
            _ => Ok(()),
        }
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn lazy_update(&self) -> LazyUpdate {
        self.lazy_update
    }

    fn step<T: Float>(&self, learning_rate: f64, weight_decay_scale: f64) -> SgdStep<T> {
        SgdStep {
            learning_rate: T::of(learning_rate),
            momentum: T::of(self.momentum),
            decay: T::of(learning_rate * self.weight_decay * weight_decay_scale),
            clip: T::of(self.clip_gradient.unwrap_or(f64::INFINITY)),
            rescale: T::of(self.rescale_grad),
        }
    }
}

/// [`Sgd`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SgdStep<T> {
    learning_rate: T,
    momentum: T,
    /// learning_rate · weight_decay.
    decay: T,
    clip: T,
    rescale: T,
}

impl<T: Float> Step<T> for SgdStep<T> {
    type State = [T; 1];

    #[inline(always)]
    fn uses_state(&self) -> bool {
        self.momentum != T::zero()
    }

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 1], grad: T) {
        let grad = self.rescale * grad;
        // Two selects instead of min/max: NaN stays NaN, and an infinite clip costs nothing to predict.
        let grad = if grad > self.clip { self.clip } else { grad };
        let grad = if grad < -self.clip { -self.clip } else { grad };
        let delta = self.learning_rate * grad + self.decay * *weight;
        if self.uses_state() {
            state[0] = self.momentum * state[0] - delta;
            *weight += state[0];
        } else {
            *weight -= delta;
        }
    }

    fn idle(&self) -> Option<IdleMap> {
        let (momentum, decay) = (self.momentum.as_f64(), self.decay.as_f64());
        (momentum != 0.0 || decay != 0.0)
            .then_some(IdleMap([[1.0 - decay, momentum], [-decay, momentum]]))
    }

    #[inline]
    fn apply_idle(map: &IdleMap, weight: &mut T, state: &mut [T; 1]) {
        let (w, v) = (weight.as_f64(), state[0].as_f64());
        let [[ww, wv], [vw, vv]] = map.0;
        *weight = T::of(ww * w + wv * v);
        state[0] = T::of(vw * w + vv * v);
    }

    #[inline]
    fn gradient_factor(&self) -> Option<T> {
        let plain = self.momentum.is_zero()
            && self.decay.is_zero()
            && self.clip.is_infinite()
            && self.rescale.is_one();
        plain.then(|| -self.learning_rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_map_is_an_update_with_gradient_zero() {
        for (momentum, weight_decay) in [(0.0, 0.1), (0.9, 0.0), (0.9, 0.1)] {
            let rule = Sgd { learning_rate: 0.5, momentum, weight_decay, ..Sgd::default() };
            let step = rule.step::<f64>(0.5, 1.0);
            let (mut w, mut v) = (1.25, [-0.75]);
            if momentum == 0.0 {
                v = [0.0];
            }
            let (mut w2, mut v2) = (w, v);
            step.update(&mut w, &mut v, 0.0);
            SgdStep::apply_idle(&step.idle().unwrap(), &mut w2, &mut v2);
            assert!((w - w2).abs() < 1e-15, "{w} {w2}");
            if momentum != 0.0 {
                assert!((v[0] - v2[0]).abs() < 1e-15);
            }
        }
        assert_eq!(Sgd::default().step::<f64>(0.1, 1.0).idle(), None);
    }

    #[test]
    fn the_shortcut_is_the_update_to_the_bit() {
        let step = Sgd::default().step::<f32>(0.37, 1.0);
        let factor = step.gradient_factor().unwrap();
        for (w, g) in [(0.1f32, 0.3f32), (-7.3, 1e-8), (0.0, -2.5), (1e20, 3.0)] {
            let mut updated = w;
            step.update(&mut updated, &mut [0.0], g);
            assert_eq!(updated.to_bits(), (w + factor * g).to_bits());
        }
        for rule in [
            Sgd { momentum: 0.5, ..Sgd::default() },
            Sgd { weight_decay: 0.5, ..Sgd::default() },
            Sgd { clip_gradient: Some(1.0), ..Sgd::default() },
            Sgd { rescale_grad: 0.5, ..Sgd::default() },
        ] {
            assert_eq!(rule.step::<f32>(0.1, 1.0).gradient_factor(), None);
        }
    }

    #[test]
    fn clipping_leaves_weight_decay_alone() {
        let rule = Sgd { weight_decay: 0.5, clip_gradient: Some(1.0), ..Sgd::default() };
        let step = rule.step::<f64>(0.1, 1.0);
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
