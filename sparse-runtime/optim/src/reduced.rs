//! What rules have in common that correct the gradient of a batch by a mean gradient.
//!
//! The gradient of a batch is a noisy sample of the gradient over all data, and the noise keeps a
//! constant step size from converging. Such a rule is given the difference of the gradient and an
//! old gradient of the same samples, adds the mean `μ` of the old gradients of all samples, and
//! hands the sum to another rule:
//!
//! ```text
//! given    d = gradient of the batch - its old gradient
//! step     (w, s) ← rule(w, s, d + μ)
//!          μ ← μ + share · d                 share = 0: the old gradients stay;
//!                                            rows / n: the new ones take their place
//! ```
//!
//! `μ` is not zero where `d` is: a row that a batch does not touch moves as well. It is kept beside
//! the weight, as a state, so that such an idle step is a step of the other rule with the gradient
//! `μ`, which is the same until the row is touched: the [drift](Step::drift) of that rule, k steps
//! of which are one affine map. Nothing is approximated, and a step costs O(rows touched). What
//! touches rows, settles them and flushes them is what does so for every rule.

use super::{
    DriftMap, Idle, IdleMap, MOST_NUMBERS, Recurrence, RuleError, StateBlock, Step, UpdateRule,
};
use sparse_core::element::Float;

/// How a rule corrects gradients: what it needs beside the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarianceReduction {
    /// Old gradients are those at a snapshot of the parameters, which is taken, and their mean
    /// computed, before every epoch whose number is a multiple of `update_freq`.
    Snapshot {
        /// Epochs from snapshot to snapshot, at least 1.
        update_freq: u64,
    },
    /// Old gradients are those of the last time that each sample was seen.
    LastSeen,
}

/// What a step makes of the gradient that it is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Correction {
    /// The mean gains `share` times the gradient; weights stay as they are.
    Gather {
        /// How much the gradient counts in the mean.
        share: f64,
    },
    /// The weight is updated by the gradient plus the mean, which then gains `share` times the
    /// gradient.
    Apply {
        /// How much the gradient counts in the mean.
        share: f64,
    },
}

/// The state of a weight: that of the rule which gets the corrected gradient, and the mean
/// gradient.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReducedState<S, T> {
    /// Of the other rule.
    pub inner: S,
    /// The mean gradient.
    pub mean: T,
}

impl<T: Float, S: StateBlock<T>> StateBlock<T> for ReducedState<S, T> {
    fn values(&self) -> impl Iterator<Item = T> {
        self.inner.values().chain(std::iter::once(self.mean))
    }

    fn values_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut T>
    where
        T: 'a,
    {
        self.inner.values_mut().chain(std::iter::once(&mut self.mean))
    }
}

/// The step of another rule with a corrected gradient. `LEARNS`: steps that apply gradients change
/// the mean as well, whose share is 0 elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReducedStep<S, T, const LEARNS: bool> {
    inner: S,
    /// Whether weights stay as they are.
    gathers: bool,
    share: T,
    /// [`Step::affine_update`] of the other rule.
    affine: Option<(T, T)>,
}

impl<S: Step<T>, T: Float, const LEARNS: bool> ReducedStep<S, T, LEARNS> {
    /// A step that applies corrected gradients and leaves the mean alone.
    pub(super) fn new(inner: S) -> Self {
        let affine = inner.affine_update();
        ReducedStep { inner, gathers: false, share: T::zero(), affine }
    }
}

impl<T: Float, S: Step<T>, const LEARNS: bool> Step<T> for ReducedStep<S, T, LEARNS> {
    type State = ReducedState<S::State, T>;
    type Idle = DriftMap;

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut Self::State, grad: T) {
        // The choices are the same for all weights of a step. A weight that is not stored while
        // gradients are gathered does not keep the next row waiting for the gradient of this one.
        if !self.gathers {
            if self.affine.is_some() {
                self.begin(weight, state);
                return self.follow(weight, state, grad);
            }
            self.inner.update(weight, &mut state.inner, grad + state.mean);
        }
        if LEARNS || self.gathers {
            state.mean += self.share * grad;
        }
    }

    const HAS_TWO_PARTS: bool = true;

    #[inline(always)]
    fn begin(&self, weight: &mut T, state: &mut Self::State) {
        if let Some((keep, rate)) = self.affine {
            *weight = keep * *weight - rate * state.mean;
        }
    }

    #[inline(always)]
    fn follow(&self, weight: &mut T, state: &mut Self::State, grad: T) {
        if let Some((_, rate)) = self.affine {
            *weight -= rate * grad;
        }
        if LEARNS {
            state.mean += self.share * grad;
        }
    }

    const HAS_OPTIONS: bool = true;

    /// Corrected gradients of a rule that is affine.
    #[inline(always)]
    fn without_options(self) -> Option<Self> {
        let affine = Some(self.affine.filter(|_| !self.gathers)?);
        Some(ReducedStep { gathers: false, affine, ..self })
    }

    #[inline(always)]
    fn only_gathers(self) -> Option<Self> {
        // Gradients of one row of data count as they are: nothing is multiplied with 1.
        let is_whole = self.gathers && self.share == T::one();
        is_whole.then_some(ReducedStep { gathers: true, share: T::one(), ..self })
    }

    fn idle(&self) -> Idle<DriftMap> {
        match self.inner.drift() {
            _ if self.gathers => Idle::Nothing,
            Some(map) => Idle::Closed(map),
            None => Idle::Open,
        }
    }

    #[inline(always)]
    fn apply_idle(&self, map: &DriftMap, weight: &mut T, state: &mut Self::State) {
        if self.affine.is_some() {
            let (w, mean) = (weight.as_f64(), state.mean.as_f64());
            *weight = T::of(map.matrix.0[0][0] * w + map.drift[0] * mean);
            return;
        }
        self.inner.apply_drift(map, weight, &mut state.inner, state.mean);
    }

    #[inline(always)]
    fn apply_scalar(&self, [scale, shift]: [T; 2], weight: &mut T, state: &mut Self::State) {
        if self.affine.is_some() {
            *weight = scale * *weight + shift * state.mean;
            return;
        }
        let map = DriftMap::of_scalar([scale.as_f64(), shift.as_f64()]);
        self.inner.apply_drift(&map, weight, &mut state.inner, state.mean);
    }

    fn implied_state(&self, weight: T) -> Option<Self::State> {
        Some(ReducedState { inner: self.inner.implied_state(weight)?, mean: T::zero() })
    }

    /// Those of the other rule, then, as the [last](super::Recurrence::corrects) ones, what is done
    /// with the gradient.
    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        let mut numbers = self.inner.numbers();
        let [.., gathers, share] = &mut numbers;
        *gathers = f64::from(u8::from(self.gathers));
        *share = self.share.as_f64();
        numbers
    }

    fn with_correction(self, correction: Correction) -> Self {
        let (gathers, share) = match correction {
            Correction::Gather { share } => (true, share),
            Correction::Apply { share } => (false, if LEARNS { share } else { 0.0 }),
        };
        ReducedStep { gathers, share: T::of(share), ..self }
    }

    #[inline(always)]
    fn scale_mean(state: &mut Self::State, factor: T) {
        // A mean that is not finite ends with it.
        state.mean = if factor == T::zero() { factor } else { state.mean * factor };
    }
}

/// The names of what a weight carries: those of `R`, and the mean gradient.
pub(super) struct States<R>(R);

impl<R: UpdateRule> States<R> {
    const ALL: [&'static str; 8] = {
        let mut names = ["mean gradient"; 8];
        let mut state = 0;
        while state < R::STATES.len() {
            names[state] = R::STATES[state];
            state += 1;
        }
        names
    };

    pub(super) const NAMES: &'static [&'static str] = Self::ALL.split_at(R::STATES.len() + 1).0;
}

/// The recurrence of a rule that hands corrected gradients to `R`, where that has formulas and a
/// state for each weight.
pub(super) const fn recurrence<R: UpdateRule>() -> Option<Recurrence> {
    match R::RECURRENCE {
        Some(inner)
            if inner.row.is_none()
                && inner.norms.is_none()
                && inner.numbers.len() + 2 <= MOST_NUMBERS =>
        {
            Some(Recurrence { idle: inner.drift, drift: None, corrects: true, ..inner })
        }
        _ => None,
    }
}

/// [`UpdateRule::check`] of rule `outer`, which hands corrected gradients to a rule `R`.
pub(super) fn check<O: UpdateRule, R: UpdateRule>(outer: &O) -> Result<(), RuleError> {
    if <<R::Step<f64> as Step<f64>>::State as StateBlock<f64>>::BY_ROW {
        return Err(RuleError::StateOfRow { rule: O::NAME, inner: R::NAME });
    }
    if R::Step::<f64>::BY_NORMS {
        return Err(RuleError::ByNorms { rule: O::NAME, inner: R::NAME });
    }
    super::check(outer)
}

/// Everything of a rule that corrects gradients which is that of the rule in its field `rule`.
macro_rules! of_inner_rule {
    ($name:literal, learns: $learns:literal) => {
        const NAME: &'static str = $name;
        const STATES: &'static [&'static str] = $crate::reduced::States::<R>::NAMES;
        const RECURRENCE: Option<$crate::Recurrence> = $crate::reduced::recurrence::<R>();
        const CORRECTS: bool = true;
        const ONE_RATE: bool = R::ONE_RATE;
        const GIVES_WEIGHTS: &'static [&'static str] = R::GIVES_WEIGHTS;

        type Step<T: sparse_core::element::Float> = $crate::ReducedStep<R::Step<T>, T, $learns>;

        fn hyperparameters(&mut self) -> Vec<$crate::Hyperparameter<'_>> {
            self.rule.hyperparameters()
        }

        fn learning_rate(&self) -> f64 {
            self.rule.learning_rate()
        }

        fn counts_until(&self) -> u64 {
            self.rule.counts_until()
        }

        fn lazy_update(&self) -> $crate::LazyUpdate {
            self.rule.lazy_update()
        }

        fn set_lazy_update(&mut self, lazy_update: $crate::LazyUpdate) {
            self.rule.set_lazy_update(lazy_update);
        }

        fn step<T: sparse_core::element::Float>(
            &self,
            learning_rate: f64,
            penalty_scale: f64,
            clock: u64,
        ) -> Self::Step<T> {
            let inner = self.rule.step(learning_rate, penalty_scale, clock);
            $crate::ReducedStep::new(inner)
        }
    };
}

pub(super) use of_inner_rule;
