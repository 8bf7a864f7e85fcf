//! What every rule does to a gradient first: rescale it and clip it by value.

use crate::element::Float;

/// `clip(rescale · g)`, to ±`clip` element by element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Preparation<T> {
    rescale: T,
    clip: T,
}

impl<T: Float> Preparation<T> {
    /// With the hyperparameters `rescale_grad` and `clip_gradient`.
    pub(super) fn new(rescale: f64, clip: Option<f64>) -> Self {
        Preparation { rescale: T::of(rescale), clip: T::of(clip.unwrap_or(f64::INFINITY)) }
    }

    /// True where a gradient is left as it is.
    pub(super) fn is_identity(&self) -> bool {
        self.clip.is_infinite() && self.rescale.is_one()
    }

    /// `clip(rescale · g)`.
    #[inline(always)]
    pub(super) fn apply(&self, grad: T) -> T {
        self.clipped(self.rescaled(grad))
    }

    /// `rescale · g`: of rules that clip what they have added to it.
    #[inline(always)]
    pub(super) fn rescaled(&self, grad: T) -> T {
        self.rescale * grad
    }

    /// `value`, at most `clip` in magnitude.
    #[inline(always)]
    pub(super) fn clipped(&self, value: T) -> T {
        // Two selects instead of min/max: NaN stays NaN, and an infinite clip costs nothing to predict.
        let value = if value > self.clip { self.clip } else { value };
        if value < -self.clip { -self.clip } else { value }
    }
}

/// `sign(value) · max(0, |value| - threshold)`, the proximal step of an L1 penalty. NaN stays NaN.
#[inline(always)]
pub(super) fn soft_threshold<T: Float>(value: T, threshold: T) -> T {
    let rest = value.abs() - threshold;
    (if rest < T::zero() { T::zero() } else { rest }).copysign(value)
}
