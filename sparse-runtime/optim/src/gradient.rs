//! What every rule does to a gradient first: rescale it and clip it by value.

use sparse_core::element::Float;

/// `clip(rescale · g)`, to ±`clip` element by element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Preparation<T> {
    rescale: T,
    clip: T,
    /// Neither changes anything: the same for all weights of a step, so that a loop over them
    /// decides it once.
    is_identity: bool,
}

impl<T: Float> Preparation<T> {
    /// With the hyperparameters `rescale_grad` and `clip_gradient`.
    #[inline]
    pub(super) fn new(rescale: f64, clip: Option<f64>) -> Self {
        let (rescale, clip) = (T::of(rescale), T::of(clip.unwrap_or(f64::INFINITY)));
        Preparation { rescale, clip, is_identity: clip.is_infinite() && rescale.is_one() }
    }

    /// What the gradient is multiplied with, and what it is then clipped to.
    pub(super) fn numbers(&self) -> [f64; 2] {
        [self.rescale.as_f64(), self.clip.as_f64()]
    }

    /// True where a gradient is left as it is.
    pub(super) fn is_identity(&self) -> bool {
        self.is_identity
    }

    /// `clip(rescale · g)`.
    #[inline(always)]
    pub(super) fn apply(&self, grad: T) -> T {
        self.clipped(self.rescaled(grad))
    }

    /// `clip(rescale · g + decay)`: of rules whose weight decay is part of the gradient.
    #[inline(always)]
    pub(super) fn with_decay(&self, grad: T, decay: T) -> T {
        self.clipped(self.rescaled(grad) + decay)
    }

    /// `rescale · g`.
    #[inline(always)]
    fn rescaled(&self, grad: T) -> T {
        if self.is_identity { grad } else { self.rescale * grad }
    }

    /// `value`, at most `clip` in magnitude.
    #[inline(always)]
    fn clipped(&self, value: T) -> T {
        if self.is_identity { value } else { within(value, self.clip) }
    }
}

/// `value`, at most `bound` in magnitude. NaN stays NaN.
#[inline(always)]
pub(super) fn within<T: Float>(value: T, bound: T) -> T {
    // Two selects instead of min/max.
    let value = if value > bound { bound } else { value };
    if value < -bound { -bound } else { value }
}

/// `sign(value) · max(0, |value| - threshold)`, the proximal step of an L1 penalty. NaN stays NaN.
#[inline(always)]
pub(super) fn soft_threshold<T: Float>(value: T, threshold: T) -> T {
    let rest = value.abs() - threshold;
    (if rest < T::zero() { T::zero() } else { rest }).copysign(value)
}
