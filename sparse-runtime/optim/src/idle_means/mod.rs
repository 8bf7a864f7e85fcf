//! Idle steps along a running mean that is divided by the root of another one: many of them as one
//! step, for rules like Adam.
//!
//! Without a gradient the mean `m` and the mean square `v` only shrink, by `β₁` and `β₂` a step.
//! Idle step `j` of a run moves a weight by
//!
//! ```text
//! rⱼ · m · β₁ʲ / (√v · θⱼ + ε)        θⱼ = √β₂ʲ
//! ```
//!
//! with `rⱼ` its rate, and `m` and `v` as they were before the run. All of the run moves it by
//!
//! ```text
//! m / √v · Σ ωⱼ · θⱼ / (θⱼ + x)       ωⱼ = rⱼ · β₁ʲ / θⱼ,  x = ε / √v
//! ```
//!
//! where `ωⱼ` and `θⱼ` are the same for all weights, and `x` is a number of the weight. The sum is
//! one over a distribution of `θ`. It follows from the first moments of the distribution,
//! `Mᵢ = Σ ωⱼ · θⱼⁱ`, which are added up from run to run: those of a run after `k` others count
//! `(β₁ / √β₂)ᵏ · √β₂ᵏⁱ` times. Gauss' quadrature with two places, which is exact in four moments,
//! as a continued fraction:
//!
//! ```text
//! Σ ≈ M₀ · A / (A + x)                A = α - V / (x + α + T / V)
//! ```
//!
//! with `α`, `V` and `T` the mean, the variance and the third central moment. So the run is a step
//! of rate `M₀ · A` at a root that has shrunk by `A`. That is exact for one step and where `x` is 0
//! or infinite; else its relative error is about `6 · x · V² / (α · (α + x)⁴)`, below 1e-8 for any
//! run and any weight at `β₁ = 0.9` and `β₂ = 0.999`. A run whose error may be above 2⁻²² for a
//! weight is made in pieces, see [`Along::make`]. Where it is not, a [`MeanRun`] has all that a row
//! asks for.

use super::IdleHistory;
use super::maps::IdleMap;
use super::mean_run::MeanRun;
use sparse_core::element::Float;

/// The relative error of a run as one step, as far as it is estimated, from which on the run is
/// made in pieces.
const TOLERANCE: f64 = 1.0 / (1 << 22) as f64;

/// A variance below this, relative to the square of the mean, is rounding.
const NO_VARIANCE: f64 = 1.0 / (1u64 << 44) as f64;

/// What a run of idle steps does to a weight, its mean and its mean square, as far as all weights
/// have it in common.
///
/// ```text
/// w ← scale · w - (what the moments make of m, v and ε)
/// m ← decays[1] · m
/// v ← root² · v
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanMap {
    /// What the weight is multiplied with.
    pub scale: f64,
    /// What the root of the mean square is multiplied with, `√β₂ᵏ` of `k` steps.
    pub root: f64,
    /// What the moments of later steps are multiplied with, `(β₁ / √β₂)ᵏ · rootⁱ`.
    pub decays: [f64; 4],
    /// `Σ ω · θⁱ`.
    pub moments: [f64; 4],
}

impl MeanMap {
    /// The map of one step `w ← scale · w - rate · β₁ · m / (√(β₂ · v) · correction + ε)`, with
    /// `betas` the two.
    pub(super) fn of_step(scale: f64, rate: f64, correction: f64, betas: [f64; 2]) -> Self {
        let [of_mean, of_square] = betas;
        // A mean square that forgets at once keeps what is nothing next to any ε.
        let root = of_square.sqrt().max(f64::MIN_POSITIVE.sqrt());
        let place = root * correction;
        let moved = rate * of_mean;
        MeanMap {
            scale,
            root,
            decays: [of_mean / root, of_mean, of_mean * root, of_mean * root * root],
            moments: [moved / place, moved, moved * place, moved * place * place],
        }
    }

    /// The same in the numbers of the weights: `is_near` says that the steps of any run that count
    /// are [near its start](are_near).
    pub(super) fn as_run<T: Float>(&self, is_near: bool) -> MeanRun<T> {
        /// The error of two places is `6 · x · V² / (α · (α + x)⁴)`, which is largest where `x` is
        /// `α / 3`: this of `V² / α⁴`.
        const LARGEST_ERROR: f64 = 6.0 * 27.0 / 256.0;
        let still = MeanRun::still(self.scale, [self.decays[1], self.root * self.root]);
        let [sum, first, ..] = self.moments;
        if sum == 0.0 && first == 0.0 {
            return still;
        }
        if !self.is_valid(is_near) {
            return MeanRun::never();
        }
        let [place, second, third] = [1, 2, 3].map(|power| self.moments[power] / sum);
        let spread = second - place * place;
        let run = MeanRun { rate: T::of(sum), place: T::of(place), ..still };
        if spread <= NO_VARIANCE * second {
            return run;
        }
        let skew = third - place * (3.0 * second - 2.0 * place * place);
        let (square, fourth) = (spread * spread, (place * place) * (place * place));
        let is_always_right = LARGEST_ERROR * square <= TOLERANCE * fourth;
        // Where x is small, the error is below 6 · x · V² / α⁵.
        let least_root =
            if is_always_right { 0.0 } else { 6.0 * square / (TOLERANCE * fourth * place) };
        MeanRun {
            spread: T::of(spread),
            far: T::of(place + skew / spread),
            least_root: T::of(least_root),
            ..run
        }
    }

    /// What is taken off a weight with this mean and the root of its mean square, by two places;
    /// `None` where that may be wrong by more than [`TOLERANCE`].
    #[cold]
    #[inline(never)]
    fn moved(&self, mean: f64, root: f64, epsilon: f64, is_near: bool) -> Option<f64> {
        let [sum, ..] = self.moments;
        // Also of a weight that has had no gradient, whose steps may be too many for the moments.
        if mean == 0.0 || sum == 0.0 {
            return Some(0.0);
        }
        if !self.is_valid(is_near) {
            return None;
        }
        let [first, second, third] = [1, 2, 3].map(|power| self.moments[power] / sum);
        let x = epsilon / root;
        let variance = second - first * first;
        let mut shrunk = first;
        if variance > NO_VARIANCE * second {
            let skew = third - first * (3.0 * second - 2.0 * first * first);
            shrunk -= variance / (x + first + skew / variance);
            let (near, far) = (first + x, 6.0 * x * variance * variance);
            // A weight that is not a number stays so.
            if far > TOLERANCE * first * (near * near) * (near * near) {
                return None;
            }
        }
        Some(mean * sum * shrunk / (shrunk * root + epsilon))
    }

    /// Whether the moments are those of a distribution on a short range.
    #[inline(always)]
    fn is_valid(&self, is_near: bool) -> bool {
        let [zeroth, first, second, _] = self.moments;
        let finite =
            zeroth.is_finite() && self.decays[0].is_finite() && zeroth > 0.0 && first > 0.0;
        finite && second > 0.0 && (is_near || self.root >= 0.5)
    }
}

/// Whether `β₁` is so far below `√β₂` that the steps of a run that count are near its start.
/// Elsewhere those of a long run, at roots that have all but vanished, weigh more than the estimate
/// of the error knows.
#[inline(always)]
pub(super) fn are_near([of_mean, of_square]: [f64; 2]) -> bool {
    let fourth = of_square.powi(4);
    of_mean * of_mean <= fourth * fourth * of_square
}

/// A weight with its mean and mean square, in the numbers in which idle steps are made, and what
/// the rule has for all weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Along {
    pub(super) weight: f64,
    pub(super) mean: f64,
    pub(super) square: f64,
    pub(super) epsilon: f64,
    /// `β₁` and `β₂`.
    pub(super) betas: [f64; 2],
    /// What a weight of 1 cannot tell.
    pub(super) least: f64,
}

impl Along {
    /// Makes a run of idle steps by two places. False, and nothing done, where it is to be made in
    /// pieces.
    #[inline(always)]
    pub(super) fn try_run(&mut self, map: &MeanMap) -> bool {
        let scaled = map.scale * self.weight;
        let root = self.square.sqrt();
        let moved = match map.moved(self.mean, root, self.epsilon, are_near(self.betas)) {
            Some(moved) => moved,
            None if self.bound(map) <= self.least * scaled.abs() => 0.0,
            None => return false,
        };
        self.end(map, scaled - moved);
        true
    }

    /// Makes one idle step.
    pub(super) fn make_one(&mut self, map: &MeanMap) {
        let [sum, first, ..] = map.moments;
        let shrunk = if sum == 0.0 { 0.0 } else { first / sum };
        let moved = first * self.mean / (shrunk * self.square.sqrt() + self.epsilon);
        self.end(map, map.scale * self.weight - moved);
    }

    /// Makes the idle steps `from .. to` of a history, where `to` is not before its newest run: as
    /// many at once as can be.
    #[cold]
    #[inline(never)]
    pub(super) fn make<A: Float>(
        &mut self,
        history: &IdleHistory<MeanMap, A>,
        (mut from, to): (u64, u64),
    ) {
        /// Pieces after which the rest is tried as a whole: a product of maps costs more than a
        /// piece of one step.
        const PIECES: usize = 16;
        while from < to {
            if self.try_run(&history.between(from, to)) {
                return;
            }
            for _ in 0..PIECES {
                if from < to {
                    let (map, end) = history.run_at(from);
                    from += self.make_piece(map, end.min(to) - from);
                }
            }
        }
    }

    /// Makes some of `count` idle steps with this map, as many at once as can be. Gives how many.
    fn make_piece(&mut self, map: MeanMap, count: u64) -> u64 {
        /// The longest piece has 2^this steps.
        const LONGEST: usize = 16;
        let mut squares = [map; LONGEST + 1];
        let longest = (count.max(1).ilog2() as usize).min(LONGEST);
        for power in 1..=longest {
            squares[power] = squares[power - 1].after(&squares[power - 1]);
        }
        for power in (1..=longest).rev() {
            if self.try_run(&squares[power]) {
                return 1 << power;
            }
        }
        self.make_one(&map);
        1
    }

    /// A bound of what a run moves the weight by.
    #[inline(always)]
    fn bound(&self, map: &MeanMap) -> f64 {
        let [by_root, by_epsilon] = [self.square.sqrt(), self.epsilon];
        // The first may be too many steps to be a number, which then is no bound.
        (map.moments[0] / by_root).min(map.moments[1] / by_epsilon).abs() * self.mean.abs()
    }

    #[inline(always)]
    fn end(&mut self, map: &MeanMap, weight: f64) {
        self.weight = weight;
        self.mean *= map.decays[1];
        self.square *= map.root * map.root;
    }
}

/// What the steps of such rules say of idle ones, by their `betas()` and `epsilon`.
macro_rules! idle_along_mean {
    () => {
        #[inline(always)]
        fn try_run(&self, run: &super::MeanRun<T>, weight: &mut T, state: &mut [T; 2]) -> bool {
            run.make(self.epsilon, weight, state)
        }

        #[inline(always)]
        fn try_idle(&self, map: &MeanMap, weight: &mut T, state: &mut [T; 2]) -> bool {
            let run = map.as_run(super::idle_means::are_near(self.betas()));
            run.make(self.epsilon, weight, state)
                || self.along(weight, state, |along| along.try_run(map))
        }

        #[inline]
        fn apply_idle(&self, map: &MeanMap, weight: &mut T, state: &mut [T; 2]) {
            if !self.try_idle(map, weight, state) {
                self.along(weight, state, |along| along.make_one(map));
            }
        }

        fn idle_in_pieces<A: Float>(
            &self,
            history: &super::IdleHistory<MeanMap, A>,
            steps: (u64, u64),
            weight: &mut T,
            state: &mut [T; 2],
        ) {
            self.along(weight, state, |along| along.make(history, steps));
        }
    };
}

/// What [`idle_along_mean`] calls, of the steps that have it.
macro_rules! along_mean {
    ($Step:ident, $beta1:ident, $beta2:ident) => {
        impl<T: Float> $Step<T> {
            /// `β₁` and `β₂`.
            #[inline(always)]
            fn betas(&self) -> [f64; 2] {
                [self.$beta1, self.$beta2].map(T::as_f64)
            }

            /// A change of a weight and its means in `f64`, each rounded once.
            #[inline(always)]
            fn along<O>(
                &self,
                weight: &mut T,
                state: &mut [T; 2],
                change: impl FnOnce(&mut super::idle_means::Along) -> O,
            ) -> O {
                let mut along = super::idle_means::Along {
                    weight: weight.as_f64(),
                    mean: state[0].as_f64(),
                    square: state[1].as_f64(),
                    epsilon: self.epsilon.as_f64(),
                    betas: self.betas(),
                    least: T::epsilon().as_f64() / 16.0,
                };
                let output = change(&mut along);
                *weight = T::of(along.weight);
                *state = [along.mean, along.square].map(T::of);
                output
            }
        }
    };
}

pub(super) use {along_mean, idle_along_mean};

impl IdleMap for MeanMap {
    const IDENTITY: MeanMap =
        MeanMap { scale: 1.0, root: 1.0, decays: [1.0; 4], moments: [0.0; 4] };

    #[inline]
    fn after(&self, first: &MeanMap) -> MeanMap {
        MeanMap {
            scale: self.scale * first.scale,
            root: self.root * first.root,
            decays: std::array::from_fn(|power| self.decays[power] * first.decays[power]),
            moments: std::array::from_fn(|power| {
                self.scale * first.moments[power] + first.decays[power] * self.moments[power]
            }),
        }
    }

    fn write(&self, numbers: &mut Vec<f64>) {
        numbers.extend([self.scale, self.root]);
        numbers.extend(self.decays.iter().chain(&self.moments));
    }

    fn read(numbers: &[f64]) -> Option<Self> {
        let (&[scale, root], rest) = numbers.split_first_chunk()?;
        let (decays, rest) = rest.split_first_chunk()?;
        let moments = rest.try_into().ok()?;
        Some(MeanMap { scale, root, decays: *decays, moments })
    }

    /// Of means that are still 0.
    fn spares_fresh(&self) -> bool {
        self.scale == 1.0
    }

    const HAS_RUNS: bool = true;

    fn run<A: Float>(&self, one: &MeanMap) -> MeanRun<A> {
        MeanMap::as_run(self, are_near([one.decays[1], one.root * one.root]))
    }

    /// What is added to a moment is less than half a unit in its last place.
    fn is_spent(&self) -> bool {
        const NOTHING: f64 = 1.0 / (1u64 << 60) as f64;
        self.scale == 1.0 && self.decays[0] <= NOTHING && self.root <= 1.0
    }

    #[inline(always)]
    fn mean(&self) -> f64 {
        self.decays[1]
    }

    #[inline(always)]
    fn root(&self) -> f64 {
        self.root
    }

    /// The higher digit's steps first: after those that are spent, the lower's add nothing.
    #[inline]
    fn of_digits(high: &MeanMap, low: &MeanMap) -> MeanMap {
        low.after(high)
    }
}

#[cfg(test)]
mod tests;
