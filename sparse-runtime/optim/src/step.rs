//! One step of an update rule on one weight, and what it does without a gradient.

use super::{Correction, DriftMap, IdleHistory, IdleMap, MOST_NUMBERS, MeanRun, StateBlock};
use sparse_core::element::Float;
use std::fmt::Debug;

/// What a step with gradient 0 does to a weight and its state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Idle<M> {
    /// It changes nothing.
    Nothing,
    /// It changes them by a map that composes, so that many steps are one.
    Closed(M),
    /// It changes them in a way of which many steps have no closed form.
    Open,
}

impl<M: IdleMap> Idle<M> {
    /// True where anything changes.
    pub fn changes(&self) -> bool {
        !matches!(self, Idle::Nothing)
    }

    /// The map, where there is one to be recorded.
    pub fn map(&self) -> Option<M> {
        match self {
            Idle::Nothing => Some(M::IDENTITY),
            Idle::Closed(map) => Some(*map),
            Idle::Open => None,
        }
    }
}

/// One step of an update rule on one weight.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a step of an update rule on weights of `{T}`",
    note = "implement `Step` for it: the recurrence on one weight, the state of a weight, and what \
            a step without gradient does"
)]
pub trait Step<T: Float>: Copy + PartialEq + Debug + Send + Sync + 'static {
    /// What a weight carries from step to step. Starts at zeros, of which [`update`](Self::update)
    /// makes the [implied](Self::implied_state) state.
    type State: StateBlock<T>;

    /// What a run of idle steps does; `()` for a rule whose idle steps change nothing or have no
    /// closed form.
    type Idle: IdleMap;

    /// True where [`uses_state`](Self::uses_state) depends on the hyperparameters. For other rules
    /// no loops are compiled for weights without state.
    const OPTIONAL_STATE: bool = false;

    /// False where the state is never read or written with these hyperparameters (momentum 0), so
    /// that it need not be allocated. Only where the state is [optional](Self::OPTIONAL_STATE).
    #[inline(always)]
    fn uses_state(&self) -> bool {
        true
    }

    /// True where [`without_options`](Self::without_options) may give a step: such a rule has its
    /// longest loops twice.
    const HAS_OPTIONS: bool = false;

    /// The same step where it makes use of none of the rule's options, with what they are then
    /// written as constants: a loop that is inlined asks for none of them.
    #[inline(always)]
    fn without_options(self) -> Option<Self> {
        None
    }

    /// The same step where it only gathers gradients in a mean and leaves weights as they are, with
    /// that written as a constant.
    #[inline(always)]
    fn only_gathers(self) -> Option<Self> {
        None
    }

    /// True where what steps add to states, and as good as that to weights, does not depend on what
    /// is there: changes that several made from the same start can then be added up. Momentum and
    /// decaying means are not so.
    const CHANGES_ADD: bool = false;

    /// The recurrence: `weight` and `state` after a step with gradient `grad`.
    ///
    /// To be inlined into loops over a row: what does not depend on the weight is computed in
    /// [`UpdateRule::step`](crate::UpdateRule::step), and choices between values are selects.
    fn update(&self, weight: &mut T, state: &mut Self::State, grad: T);

    /// True where an [update](Self::update) [without options](Self::without_options) is, to the
    /// bit, one [part](Self::begin) that needs no gradient, and one that [adds](Self::follow) it: a
    /// loop may make the first as it reads the weight.
    const HAS_TWO_PARTS: bool = false;

    /// The part of an update that needs no gradient: a step with gradient 0. Asked only of steps
    /// [without options](Self::without_options) that [have two parts](Self::HAS_TWO_PARTS).
    #[inline(always)]
    fn begin(&self, weight: &mut T, state: &mut Self::State) {
        let _ = (weight, state);
    }

    /// What is then left of the update. Asked as [`begin`](Self::begin) is.
    #[inline(always)]
    fn follow(&self, weight: &mut T, state: &mut Self::State, grad: T) {
        self.update(weight, state, grad);
    }

    /// The state that gives a weight which has had no gradient: drawn, loaded, or set by hand. A
    /// weight that follows from its state, as of [`Ftrl`](crate::Ftrl), would be forgotten without
    /// it. [`update`](Self::update) starts from it where the state is zeros, so that states which
    /// nobody has written stay zeros. `None` where no state gives the weight.
    fn implied_state(&self, weight: T) -> Option<Self::State> {
        let _ = weight;
        Some(Self::State::default())
    }

    /// The numbers that the rule's [recurrence](crate::UpdateRule::RECURRENCE) names, in its order,
    /// then zeros.
    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        [0.0; MOST_NUMBERS]
    }

    /// What a step with gradient 0 does to (weight, state).
    fn idle(&self) -> Idle<Self::Idle>;

    /// Applies the map of some idle steps to a weight and its state. `self` is any step of the same
    /// rule: what idle steps have of their own (the learning rate) is in the map.
    fn apply_idle(&self, map: &Self::Idle, weight: &mut T, state: &mut Self::State);

    /// [`apply_idle`](Self::apply_idle) where the map gives what its steps would, one after the
    /// other, up to a millionth of what they move the weight by; else false, and nothing is done:
    /// the steps are to be made [in pieces](Self::idle_in_pieces).
    #[inline(always)]
    fn try_idle(&self, map: &Self::Idle, weight: &mut T, state: &mut Self::State) -> bool {
        self.apply_idle(map, weight, state);
        true
    }

    /// Makes a [run](IdleMap::run), to the bits of [`try_idle`](Self::try_idle) by its map. False,
    /// and nothing done, of a weight that this is not right for.
    #[inline(always)]
    fn try_run(&self, run: &MeanRun<T>, weight: &mut T, state: &mut Self::State) -> bool {
        let _ = (run, weight, state);
        false
    }

    /// Makes some of the idle steps of a history, from one up to another, which is not before its
    /// newest run, where their map is [refused](Self::try_idle).
    fn idle_in_pieces<A: Float>(
        &self,
        history: &IdleHistory<Self::Idle, A>,
        (from, to): (u64, u64),
        weight: &mut T,
        state: &mut Self::State,
    ) {
        self.apply_idle(&history.between(from, to), weight, state);
    }

    /// Applies the [scalar](IdleMap::scalar) map of some idle steps, `[scale, shift]`, as
    /// [`apply_idle`](Self::apply_idle) does the map.
    #[inline(always)]
    fn apply_scalar(&self, scalar: [T; 2], weight: &mut T, state: &mut Self::State) {
        self.apply_idle(&Self::Idle::of_scalar(scalar.map(T::as_f64)), weight, state);
    }

    /// What a step does whose gradient is the same each time, as a map that composes: `None` where
    /// many have no closed form.
    fn drift(&self) -> Option<DriftMap> {
        None
    }

    /// Applies the map of some steps with the gradient `grad` to a weight and its state. `self` is
    /// any step of the same rule.
    #[inline(always)]
    fn apply_drift(&self, map: &DriftMap, weight: &mut T, state: &mut Self::State, grad: T) {
        let _ = (map, weight, state, grad);
    }

    /// `Some((keep, rate))` where [`update`](Self::update) is `weight ← keep · weight - rate ·
    /// grad` up to rounding, without state. Only a shortcut for rules around this one: `None` is
    /// always right.
    fn affine_update(&self) -> Option<(T, T)> {
        None
    }

    /// Of a rule that [corrects](crate::UpdateRule::CORRECTS) gradients, the same step with another
    /// use of the gradient.
    fn with_correction(self, correction: Correction) -> Self {
        let _ = correction;
        self
    }

    /// Of such a rule, multiplies the mean gradient of a weight.
    #[inline(always)]
    fn scale_mean(state: &mut Self::State, factor: T) {
        let _ = (state, factor);
    }

    /// Of a rule with a state [of the row](crate::OfRow), the term of one gradient in the mean over
    /// the row.
    #[inline(always)]
    fn row_term(&self, grad: T) -> T {
        let _ = grad;
        T::zero()
    }

    /// Of a rule with a state [of the row](crate::OfRow), what a gradient does to it, before the
    /// [updates](Self::update) of the weights, which leave it alone: `mean` is that of the
    /// [terms](Self::row_term).
    #[inline(always)]
    fn begin_row(&self, state: &mut Self::State, mean: T) {
        let _ = (state, mean);
    }

    /// True of a rule whose steps depend on norms of a whole parameter: [`update`](Self::update)
    /// changes states alone, and when all weights of the parameter have had theirs, each moves
    /// along its [direction](Self::direction), by one [rate](Self::rate_by_norms) for all.
    const BY_NORMS: bool = false;

    /// Of a rule [by norms](Self::BY_NORMS), what is taken off a weight, but for the rate.
    #[inline(always)]
    fn direction(&self, weight: T, state: &Self::State) -> T {
        let _ = (weight, state);
        T::zero()
    }

    /// Of a rule [by norms](Self::BY_NORMS), what directions are multiplied with: `weights` and
    /// `directions` are the Euclidean norms of those of the whole parameter.
    fn rate_by_norms(&self, weights: f64, directions: f64) -> T {
        let _ = (weights, directions);
        T::zero()
    }

    /// `Some(c)` where [`update`](Self::update) is `weight += c · grad`, to the bit on finite
    /// weights, and nothing else, so that a loop over weights can be just that. Only a shortcut:
    /// `None` is always right. Asked only where the state is [optional](Self::OPTIONAL_STATE), and
    /// then not in use.
    fn gradient_factor(&self) -> Option<T> {
        None
    }
}
