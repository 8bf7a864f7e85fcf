//! Stochastic gradient descent with momentum, weight decay, clipping and rescaling.

use super::gradient::Preparation;
use super::{Bound, Hyperparameter, Idle, LazyUpdate, MatrixMap, Step, UpdateRule};
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

    fn hyperparameters(&mut self) -> Vec<Hyperparameter<'_>> {
        vec![
            Hyperparameter::number("learning_rate", &mut self.learning_rate, Bound::PositiveFinite),
            Hyperparameter::number("momentum", &mut self.momentum, Bound::BelowOne),
            Hyperparameter::number("weight_decay", &mut self.weight_decay, Bound::AtLeastZero),
            Hyperparameter::optional("clip_gradient", &mut self.clip_gradient, Bound::Positive),
            Hyperparameter::number("rescale_grad", &mut self.rescale_grad, Bound::Finite),
        ]
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn lazy_update(&self) -> LazyUpdate {
        self.lazy_update
    }

    fn set_lazy_update(&mut self, lazy_update: LazyUpdate) {
        self.lazy_update = lazy_update;
    }

    fn step<T: Float>(&self, learning_rate: f64, penalty_scale: f64, _: u64) -> SgdStep<T> {
        SgdStep {
            learning_rate: T::of(learning_rate),
            momentum: T::of(self.momentum),
            decay: T::of(learning_rate * self.weight_decay * penalty_scale),
            preparation: Preparation::new(self.rescale_grad, self.clip_gradient),
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
    preparation: Preparation<T>,
}

impl<T: Float> Step<T> for SgdStep<T> {
    type State = [T; 1];
    type Idle = MatrixMap;

    #[inline(always)]
    fn uses_state(&self) -> bool {
        self.momentum != T::zero()
    }

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 1], grad: T) {
        let grad = self.preparation.apply(grad);
        let delta = self.learning_rate * grad + self.decay * *weight;
        if self.uses_state() {
            state[0] = self.momentum * state[0] - delta;
            *weight += state[0];
        } else {
            *weight -= delta;
        }
    }

    fn idle(&self) -> Idle<MatrixMap> {
        let (momentum, decay) = (self.momentum.as_f64(), self.decay.as_f64());
        if momentum == 0.0 && decay == 0.0 {
            return Idle::Nothing;
        }
        Idle::Closed(MatrixMap([[1.0 - decay, momentum], [-decay, momentum]]))
    }

    #[inline]
    fn apply_idle(&self, map: &MatrixMap, weight: &mut T, state: &mut [T; 1]) {
        let (w, v) = (weight.as_f64(), state[0].as_f64());
        let [[ww, wv], [vw, vv]] = map.0;
        *weight = T::of(ww * w + wv * v);
        state[0] = T::of(vw * w + vv * v);
    }

    #[inline]
    fn gradient_factor(&self) -> Option<T> {
        let plain =
            self.momentum.is_zero() && self.decay.is_zero() && self.preparation.is_identity();
        plain.then(|| -self.learning_rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            Sgd { clip_gradient: Some(1.0), ..Sgd::default() },
            Sgd { rescale_grad: 0.5, ..Sgd::default() },
        ] {
            assert_eq!(rule.step::<f32>(0.1, 1.0, 0).gradient_factor(), None);
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
