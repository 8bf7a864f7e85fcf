//! A run of idle steps along a mean as one step, in the few numbers that most rows are settled by.

use sparse_core::element::Float;

/// What a [`MeanMap`](super::MeanMap) does, in the numbers of the weights, each rounded once, and
/// in half a line of the cache: a loop over rows looks one up for each of them.
///
/// ```text
/// A = place - spread · √v / (far · √v + epsilon)
/// w ← scale · w - m · rate · A / (A · √v + epsilon)
/// m ← of_mean · m
/// v ← of_square · v
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(32))]
pub struct MeanRun<T> {
    /// What the weight is multiplied with.
    pub scale: T,
    /// `M₀`.
    pub rate: T,
    /// `α`.
    pub place: T,
    /// `V`.
    pub spread: T,
    /// `α + T / V`.
    pub far: T,
    /// The least `√v`, in units of `epsilon`, for which two places are enough; NaN where they never
    /// are.
    pub least_root: T,
    /// What the mean is multiplied with.
    pub of_mean: T,
    /// What the mean square is multiplied with.
    pub of_square: T,
}

impl<T: Float> MeanRun<T> {
    /// A run that no weight is settled by.
    pub(super) fn never() -> Self {
        MeanRun { least_root: T::of(f64::NAN), ..Self::still(1.0, [1.0; 2]) }
    }

    /// A run that moves no weight.
    pub(super) fn still(scale: f64, [of_mean, of_square]: [f64; 2]) -> Self {
        MeanRun {
            scale: T::of(scale),
            rate: T::zero(),
            place: T::one(),
            spread: T::zero(),
            far: T::one(),
            least_root: T::zero(),
            of_mean: T::of(of_mean),
            of_square: T::of(of_square),
        }
    }

    /// Makes the run. False, and nothing done, where two places are not enough for the weight.
    #[inline(always)]
    pub(super) fn make(&self, epsilon: T, weight: &mut T, state: &mut [T; 2]) -> bool {
        let [mean, square] = *state;
        let root = square.sqrt();
        let shrunk = self.place - self.spread * root / (self.far * root + epsilon);
        let moved = mean * (self.rate * shrunk / (shrunk * root + epsilon));
        // Not of a root that is not a number.
        let is_right = root >= self.least_root * epsilon;
        if is_right {
            *weight = self.scale * *weight - moved;
            *state = [self.of_mean * mean, self.of_square * square];
        }
        is_right
    }
}
