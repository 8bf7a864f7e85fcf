//! Update rules: what a gradient does to a weight, each stated once.
//!
//! A rule gives its hyperparameters with their bounds ([`UpdateRule::hyperparameters`]), the recurrence of one step
//! on one weight ([`Step::update`]), the state that the weight carries ([`Step::State`]) and what a step *without*
//! gradient does ([`Step::idle`]), as a map that composes. The runtime derives the dense, exact and touched-rows
//! updates from these and from nothing else; checks, command lines and the refusal of `Exact` where there is no closed
//! form follow too.
//!
//! The rate of a rule is its field `learning_rate`. For a field that a rule lacks, such as `lr`,
//! rustc proposes the one that is spelt most like it, `l1`.
//!
//! A rule is one file, which states it once by `update_rule!`, and its name in the list of `names.rs`. The page of all rules with
//! their formulas and hyperparameters, `docs/optimizers.md`, is made from these statements.

mod adadelta;
mod adagrad;
mod adam;
mod adamax;
mod adamw;
mod centered_rmsprop;
mod dcasgd;
mod ftml;
mod ftrl;
mod gradient;
mod group_adagrad;
mod hyperparameters;
mod idle;
mod idle_means;
mod lamb;
mod maps;
mod mean_run;
mod means;
mod nadam;
mod names;

mod powers;
mod racing;
mod recurrence;
mod reduced;
mod rmsprop;
mod rule;
mod saga;
mod sgd;
mod signum;
mod suffixes;
mod svrg;
#[cfg(test)]
mod tests;

pub use adadelta::{AdaDelta, AdaDeltaStep};
pub use adagrad::{AdaGrad, AdaGradStep};
pub use adam::{Adam, AdamStep};
pub use adamax::{AdaMax, AdaMaxMap, AdaMaxStep};
pub use adamw::{AdamW, AdamWStep};
pub use centered_rmsprop::{CenteredMap, CenteredRmsProp, CenteredRmsPropStep};
pub use dcasgd::{DcAsgd, DcAsgdStep};
pub use ftml::{Ftml, FtmlMap, FtmlStep};
pub use ftrl::{Ftrl, FtrlStep, LeaderMap};
pub use group_adagrad::{GroupAdaGrad, GroupAdaGradStep};
pub use hyperparameters::{Bound, Hyperparameter, Setting};
pub use idle::IdleHistory;
pub use idle_means::MeanMap;
pub use lamb::{Lamb, LambStep};
pub use maps::{DriftMap, IdleMap, MatrixMap, ScaleMap, ShrinkMap};
pub use mean_run::MeanRun;
pub use nadam::{Nadam, NadamStep};
pub use names::{NAMES, RuleVisitor, UnknownRule, with_rule};
pub use powers::Runs;
pub use racing::Racing;
pub use recurrence::{
    IdleRecurrence, MOST_IDLE_NUMBERS, MOST_NUMBERS, NormRecurrence, Recurrence, RowRecurrence,
};
pub use reduced::{Correction, ReducedState, ReducedStep, VarianceReduction};
pub use rmsprop::{RmsProp, RmsPropStep};
pub use saga::Saga;
pub use sgd::{Sgd, SgdMap, SgdStep};
pub use signum::{SignMap, Signum, SignumStep};
pub use suffixes::Suffixes;
pub use svrg::Svrg;

use crate::element::Float;
use std::fmt::Debug;

/// How the rows of a `row_sparse` gradient reach a parameter and its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LazyUpdate {
    /// The mathematics of the dense update at the cost of the sparse one: a row that batches did not touch
    /// is brought up to date in closed form when it is next read. The default.
    #[default]
    Exact,
    /// Only the rows of the gradient change, weights and states (MXNet's `lazy_update = True`): an
    /// approximation wherever an idle step is not the identity.
    Touched,
    /// Every row changes at every step: O(rows) a step. For comparison.
    Dense,
}

crate::debug_of_errors!(InvalidHyperparameter, RuleError, UnknownRule);

/// A rule was given a hyperparameter that it cannot work with.
#[derive(Clone, PartialEq, thiserror::Error)]
#[error("{rule}: `{name}` is {value}, but must be {bound}")]
pub struct InvalidHyperparameter {
    /// The rule's name.
    pub rule: &'static str,
    /// The hyperparameter's name.
    pub name: &'static str,
    /// The value given.
    pub value: f64,
    /// What is allowed, in words.
    pub bound: &'static str,
}

/// A rule cannot be used as it stands.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// A hyperparameter is outside its bound.
    #[error(transparent)]
    Hyperparameter(#[from] InvalidHyperparameter),
    /// `LazyUpdate::Exact` of a rule, or of hyperparameters, whose idle steps have no closed form.
    #[error(
        "{rule}: steps without a gradient have no closed form with these hyperparameters, so that `lazy_update` cannot be `LazyUpdate::Exact`: choose `LazyUpdate::Touched`, which changes only the rows of a batch, or `LazyUpdate::Dense`, which changes all rows at every step"
    )]
    NoClosedForm {
        /// The rule's name.
        rule: &'static str,
    },
    /// `LazyUpdate::Exact` of a rule whose running means see the weight decay.
    #[error(
        "{rule}: `weight_decay` is part of the gradient here, so that steps without another one have no closed form and `lazy_update` cannot be `LazyUpdate::Exact`: choose a rule that decays weights beside its step, such as `AdamW`, or leave `weight_decay` at 0, or choose `LazyUpdate::Touched`, which changes only the rows of a batch, or `LazyUpdate::Dense`, which changes all rows at every step"
    )]
    CoupledDecay {
        /// The rule's name.
        rule: &'static str,
    },
    /// Another mode than `LazyUpdate::Dense` of a rule whose steps depend on [norms](Step::BY_NORMS) of a whole parameter.
    #[error(
        "{rule}: each step depends on norms of the whole parameter, so that `lazy_update` cannot be `LazyUpdate::{mode:?}`: choose `LazyUpdate::Dense`, which changes all rows at every step"
    )]
    NeedsAllRows {
        /// The rule's name.
        rule: &'static str,
        /// The mode that was asked for.
        mode: LazyUpdate,
    },
    /// A hyperparameter that the rule does not have was to be set.
    #[error("{rule}: there is no hyperparameter `{name}`, but {known}")]
    UnknownHyperparameter {
        /// The rule's name.
        rule: &'static str,
        /// The name given.
        name: String,
        /// The names that there are, each in backticks.
        known: String,
    },
    /// The mean gradient was to be that of a known bug.
    #[error(
        "{rule}: `accumulates` adds the gradient over all samples to what is left of the one before, as MXNet's `SVRGModule` does, so that steps follow no gradient of the loss: leave it out, the mean is that of the last snapshot"
    )]
    AccumulatingMean {
        /// The rule.
        rule: &'static str,
    },
    /// A rule whose steps depend on norms of a whole parameter was to be given corrected gradients.
    #[error(
        "{rule}: steps of `{inner}` depend on norms of the whole parameter, but corrected ones are made row by row: give a rule that needs a weight alone, such as `sgd`"
    )]
    ByNorms {
        /// The rule that corrects gradients.
        rule: &'static str,
        /// The rule that they were to be handed to.
        inner: &'static str,
    },
    /// A rule with one state for each row was to be given corrected gradients.
    #[error(
        "{rule}: `{inner}` keeps one state for a row, where a mean gradient for each weight is kept beside it: give a rule with a state for each weight, such as `sgd`"
    )]
    StateOfRow {
        /// The rule that corrects gradients.
        rule: &'static str,
        /// The rule that they were to be handed to.
        inner: &'static str,
    },
}

/// An update rule with its hyperparameters: what a user passes to a trainer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an update rule",
    note = "give a rule with its hyperparameters, such as `Sgd {{ learning_rate: 0.1, \
            ..Sgd::default() }}`, or implement `UpdateRule` for your own"
)]
pub trait UpdateRule: Clone + Debug + Default + PartialEq + Send + Sync + 'static {
    /// The rule's name on command lines and in checkpoints.
    const NAME: &'static str;

    /// What it does, in Markdown: a sentence, the recurrence, what is known of idle steps, the source.
    const ABOUT: &'static str = "";

    /// The names of what a weight carries, in the order of [`StateBlock::values`].
    const STATES: &'static [&'static str] = &[];

    /// The recurrence as formulas, for devices that compile it; a rule without it runs on the host only.
    const RECURRENCE: Option<Recurrence> = None;

    /// True of a rule that corrects gradients by a mean gradient, see [`variance_reduction`](Self::variance_reduction).
    const CORRECTS: bool = false;

    /// Whether rows can wait for idle steps on a GPU, as [`LazyUpdate::Exact`] has them: only the
    /// last of such steps counts, or a kernel catches up by their formulas. It follows from the
    /// recurrence and the map; leave it as it is.
    const CATCHES_UP_ON_GPU: bool = <<Self::Step<f64> as Step<f64>>::Idle as IdleMap>::FORGETS
        || match Self::RECURRENCE {
            Some(recurrence) => recurrence.has_idle_kernel(),
            None => false,
        };

    /// True of [`Racing`] rules, whose steps several threads make at once.
    const RACES: bool = false;

    /// True of a rule whose states hold at one learning rate, so that no schedule may change it.
    const ONE_RATE: bool = false;

    /// The hyperparameters without which no state of the rule gives a weight that is not 0: one of them must be above 0 where
    /// [`Step::implied_state`] is to be something. None for rules whose weights do not follow from their states.
    const GIVES_WEIGHTS: &'static [&'static str] = &[];

    /// One step of the rule with every hyperparameter resolved.
    type Step<T: Float>: Step<T>;

    /// The hyperparameters by name, each with what it may be, in the order of the fields.
    fn hyperparameters(&mut self) -> Vec<Hyperparameter<'_>>;

    /// The learning rate before any schedule.
    fn learning_rate(&self) -> f64;

    /// Where a step depends on how many were made before it: the number of steps after which it no longer does. 0 where a
    /// step is like any other.
    fn counts_until(&self) -> u64 {
        0
    }

    /// How a rule corrects the gradient of a batch before it uses it, if it does: what a trainer must prepare, in between epochs and
    /// for each step.
    fn variance_reduction(&self) -> Option<VarianceReduction> {
        None
    }

    /// How row_sparse gradients are applied.
    fn lazy_update(&self) -> LazyUpdate;

    /// Chooses how row_sparse gradients are applied.
    fn set_lazy_update(&mut self, lazy_update: LazyUpdate);

    /// The step at a given learning rate, after `clock` others. `penalty_scale` multiplies the rule's penalties: weight
    /// decay and L1 (0 for parameters that are not to be shrunk, such as biases).
    fn step<T: Float>(&self, learning_rate: f64, penalty_scale: f64, clock: u64) -> Self::Step<T>;

    /// Sets a hyperparameter by name. Whether a number makes sense is for [`check`](Self::check) to say; a choice, which cannot keep any
    /// other, is 0 or 1.
    ///
    /// # Errors
    ///
    /// [`RuleError::UnknownHyperparameter`], with the names that there are; [`RuleError::Hyperparameter`] for another number as a choice.
    fn set(&mut self, name: &str, value: f64) -> Result<(), RuleError> {
        let mut rows = self.hyperparameters();
        if let Some(row) = rows.iter_mut().find(|row| row.name == name) {
            if row.bound == Bound::Flag {
                row.check_number(Self::NAME, value)?;
            }
            row.set(value);
            return Ok(());
        }
        let known: Vec<_> = rows.iter().map(|row| format!("`{}`", row.name)).collect();
        Err(RuleError::UnknownHyperparameter {
            rule: Self::NAME,
            name: name.to_owned(),
            known: known.join(", "),
        })
    }

    /// Refuses hyperparameters that make no sense (negative rates, NaN), [`LazyUpdate::Exact`] where idle steps
    /// have no closed form, and all but [`LazyUpdate::Dense`] where a step depends on a whole parameter.
    ///
    /// # Errors
    ///
    /// [`RuleError::Hyperparameter`] for the first outside its bound; [`RuleError::NoClosedForm`]; [`RuleError::CoupledDecay`];
    /// [`RuleError::NeedsAllRows`].
    fn check(&self) -> Result<(), RuleError> {
        check(self)
    }
}

/// [`UpdateRule::check`] as far as it follows from what every rule states.
fn check<R: UpdateRule>(rule: &R) -> Result<(), RuleError> {
    for row in rule.clone().hyperparameters() {
        row.check(R::NAME)?;
    }
    let mode = rule.lazy_update();
    if <R::Step<f64> as Step<f64>>::BY_NORMS && mode != LazyUpdate::Dense {
        return Err(RuleError::NeedsAllRows { rule: R::NAME, mode });
    }
    if mode != LazyUpdate::Exact || is_closed(rule) {
        return Ok(());
    }
    let mut without_decay = rule.clone();
    if without_decay.set("weight_decay", 0.0).is_ok() && is_closed(&without_decay) {
        return Err(RuleError::CoupledDecay { rule: R::NAME });
    }
    Err(RuleError::NoClosedForm { rule: R::NAME })
}

/// Whether idle steps have a closed form.
fn is_closed<R: UpdateRule>(rule: &R) -> bool {
    let idle = rule.step::<f64>(rule.learning_rate(), 1.0, 0).idle();
    let by_row = <<R::Step<f64> as Step<f64>>::State as StateBlock<f64>>::BY_ROW;
    idle != Idle::Open && !(by_row && idle.changes())
}

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
    /// What a weight carries from step to step. Starts at zeros, of which [`update`](Self::update) makes the [implied](Self::implied_state) state.
    type State: StateBlock<T>;

    /// What a run of idle steps does; `()` for a rule whose idle steps change nothing or have no closed form.
    type Idle: IdleMap;

    /// True where [`uses_state`](Self::uses_state) depends on the hyperparameters. For other rules no loops are compiled for weights
    /// without state.
    const OPTIONAL_STATE: bool = false;

    /// False where the state is never read or written with these hyperparameters (momentum 0), so that it
    /// need not be allocated. Only where the state is [optional](Self::OPTIONAL_STATE).
    #[inline(always)]
    fn uses_state(&self) -> bool {
        true
    }

    /// True where [`without_options`](Self::without_options) may give a step: such a rule has its longest loops twice.
    const HAS_OPTIONS: bool = false;

    /// The same step where it makes use of none of the rule's options, with what they are then written as constants: a loop that is
    /// inlined asks for none of them.
    #[inline(always)]
    fn without_options(self) -> Option<Self> {
        None
    }

    /// The same step where it only gathers gradients in a mean and leaves weights as they are, with that written as a constant.
    #[inline(always)]
    fn only_gathers(self) -> Option<Self> {
        None
    }

    /// True where what steps add to states, and as good as that to weights, does not depend on what is there: changes that several made
    /// from the same start can then be added up. Momentum and decaying means are not so.
    const CHANGES_ADD: bool = false;

    /// The recurrence: `weight` and `state` after a step with gradient `grad`.
    ///
    /// To be inlined into loops over a row: what does not depend on the weight is computed in [`UpdateRule::step`], and
    /// choices between values are selects.
    fn update(&self, weight: &mut T, state: &mut Self::State, grad: T);

    /// True where an [update](Self::update) [without options](Self::without_options) is, to the bit, one [part](Self::begin) that needs no
    /// gradient, and one that [adds](Self::follow) it: a loop may make the first as it reads the weight.
    const HAS_TWO_PARTS: bool = false;

    /// The part of an update that needs no gradient: a step with gradient 0. Asked only of steps [without options](Self::without_options)
    /// that [have two parts](Self::HAS_TWO_PARTS).
    #[inline(always)]
    fn begin(&self, weight: &mut T, state: &mut Self::State) {
        let _ = (weight, state);
    }

    /// What is then left of the update. Asked as [`begin`](Self::begin) is.
    #[inline(always)]
    fn follow(&self, weight: &mut T, state: &mut Self::State, grad: T) {
        self.update(weight, state, grad);
    }

    /// The state that gives a weight which has had no gradient: drawn, loaded, or set by hand. A weight that follows from its state, as of
    /// [`Ftrl`], would be forgotten without it. [`update`](Self::update) starts from it where the state is zeros, so that states which nobody has
    /// written stay zeros. `None` where no state gives the weight.
    fn implied_state(&self, weight: T) -> Option<Self::State> {
        let _ = weight;
        Some(Self::State::default())
    }

    /// The numbers that the rule's [recurrence](UpdateRule::RECURRENCE) names, in its order, then zeros.
    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        [0.0; MOST_NUMBERS]
    }

    /// What a step with gradient 0 does to (weight, state).
    fn idle(&self) -> Idle<Self::Idle>;

    /// Applies the map of some idle steps to a weight and its state. `self` is any step of the same rule: what idle steps
    /// have of their own (the learning rate) is in the map.
    fn apply_idle(&self, map: &Self::Idle, weight: &mut T, state: &mut Self::State);

    /// [`apply_idle`](Self::apply_idle) where the map gives what its steps would, one after the other, up to a millionth of what they move the
    /// weight by; else false, and nothing is done: the steps are to be made [in pieces](Self::idle_in_pieces).
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

    /// Makes some of the idle steps of a history, from one up to another, which is not before its newest run, where their map is
    /// [refused](Self::try_idle).
    fn idle_in_pieces<A: Float>(
        &self,
        history: &IdleHistory<Self::Idle, A>,
        (from, to): (u64, u64),
        weight: &mut T,
        state: &mut Self::State,
    ) {
        self.apply_idle(&history.between(from, to), weight, state);
    }

    /// Applies the [scalar](IdleMap::scalar) map of some idle steps, `[scale, shift]`, as [`apply_idle`](Self::apply_idle) does the map.
    #[inline(always)]
    fn apply_scalar(&self, scalar: [T; 2], weight: &mut T, state: &mut Self::State) {
        self.apply_idle(&Self::Idle::of_scalar(scalar.map(T::as_f64)), weight, state);
    }

    /// What a step does whose gradient is the same each time, as a map that composes: `None` where many have no closed form.
    fn drift(&self) -> Option<DriftMap> {
        None
    }

    /// Applies the map of some steps with the gradient `grad` to a weight and its state. `self` is any step of the same rule.
    #[inline(always)]
    fn apply_drift(&self, map: &DriftMap, weight: &mut T, state: &mut Self::State, grad: T) {
        let _ = (map, weight, state, grad);
    }

    /// `Some((keep, rate))` where [`update`](Self::update) is `weight ← keep · weight - rate · grad` up to rounding, without state. Only a
    /// shortcut for rules around this one: `None` is always right.
    fn affine_update(&self) -> Option<(T, T)> {
        None
    }

    /// Of a rule that [corrects](UpdateRule::CORRECTS) gradients, the same step with another use of the gradient.
    fn with_correction(self, correction: Correction) -> Self {
        let _ = correction;
        self
    }

    /// Of such a rule, multiplies the mean gradient of a weight.
    #[inline(always)]
    fn scale_mean(state: &mut Self::State, factor: T) {
        let _ = (state, factor);
    }

    /// Of a rule with a state [of the row](OfRow), the term of one gradient in the mean over the row.
    #[inline(always)]
    fn row_term(&self, grad: T) -> T {
        let _ = grad;
        T::zero()
    }

    /// Of a rule with a state [of the row](OfRow), what a gradient does to it, before the [updates](Self::update) of the
    /// weights, which leave it alone: `mean` is that of the [terms](Self::row_term).
    #[inline(always)]
    fn begin_row(&self, state: &mut Self::State, mean: T) {
        let _ = (state, mean);
    }

    /// True of a rule whose steps depend on norms of a whole parameter: [`update`](Self::update) changes states alone, and when all weights of the
    /// parameter have had theirs, each moves along its [direction](Self::direction), by one [rate](Self::rate_by_norms) for all.
    const BY_NORMS: bool = false;

    /// Of a rule [by norms](Self::BY_NORMS), what is taken off a weight, but for the rate.
    #[inline(always)]
    fn direction(&self, weight: T, state: &Self::State) -> T {
        let _ = (weight, state);
        T::zero()
    }

    /// Of a rule [by norms](Self::BY_NORMS), what directions are multiplied with: `weights` and `directions` are the Euclidean norms of those of
    /// the whole parameter.
    fn rate_by_norms(&self, weights: f64, directions: f64) -> T {
        let _ = (weights, directions);
        T::zero()
    }

    /// `Some(c)` where [`update`](Self::update) is `weight += c · grad`, to the bit on finite weights, and
    /// nothing else, so that a loop over weights can be just that. Only a shortcut: `None` is always right. Asked only where the
    /// state is [optional](Self::OPTIONAL_STATE), and then not in use.
    fn gradient_factor(&self) -> Option<T> {
        None
    }
}

/// A fixed number of values that a weight carries: `()`, or an array. They lie in the same memory as the weights, which is zero before
/// anybody has written it, so that there are no other states than these. A rule may [mean](Step::implied_state) something else by zeros.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the state of a weight of `{T}`",
    note = "a weight carries nothing, `()`, or a fixed number of values: `[{T}; 2]`"
)]
pub trait StateBlock<T>: sealed::Sealed + Copy + Default + Debug + Send + Sync + 'static {
    /// True where all weights of a row share one state, see [`OfRow`].
    const BY_ROW: bool = false;

    /// The values, in order, as checkpoints write them.
    fn values(&self) -> impl Iterator<Item = T>;
    /// The values, for loading.
    fn values_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut T>
    where
        T: 'a;
}

mod sealed {
    /// Of types whose bits may all be zero.
    pub trait Sealed {}
    impl Sealed for () {}
    impl<T: super::Float, const N: usize> Sealed for [T; N] {}
    impl<S: Sealed> Sealed for super::OfRow<S> {}
    impl<S: Sealed, T: super::Float> Sealed for super::reduced::ReducedState<S, T> {}
}

/// A state that the weights of a row share. A step changes it once, by [`Step::begin_row`]; idle steps of such a rule change
/// nothing, or have no closed form.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
pub struct OfRow<S>(pub S);

impl<T, S: StateBlock<T>> StateBlock<T> for OfRow<S> {
    const BY_ROW: bool = true;

    fn values(&self) -> impl Iterator<Item = T> {
        self.0.values()
    }

    fn values_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut T>
    where
        T: 'a,
    {
        self.0.values_mut()
    }
}

impl<T> StateBlock<T> for () {
    fn values(&self) -> impl Iterator<Item = T> {
        std::iter::empty()
    }

    fn values_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut T>
    where
        T: 'a,
    {
        std::iter::empty()
    }
}

impl<T: Float, const N: usize> StateBlock<T> for [T; N]
where
    [T; N]: Default,
{
    fn values(&self) -> impl Iterator<Item = T> {
        self.iter().copied()
    }

    fn values_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut T>
    where
        T: 'a,
    {
        self.iter_mut()
    }
}
