//! Update rules: what a gradient does to a weight, each stated once.
//!
//! A rule gives the recurrence of one step on one weight ([`Step::update`]), the state that the weight
//! carries ([`Step::State`]) and what a step *without* gradient does ([`Step::idle`]), as a linear map. The
//! runtime derives the dense, exact and touched-rows updates from these three and from nothing else.

mod idle;
mod sgd;
mod suffixes;

pub use idle::{IdleHistory, IdleMap};
pub use sgd::{Sgd, SgdStep};

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

/// A rule was given a hyperparameter that it cannot work with.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
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

/// An update rule with its hyperparameters: what a user passes to a trainer.
pub trait UpdateRule: Clone + Debug + Send + Sync + 'static {
    /// The rule's name on command lines and in checkpoints.
    const NAME: &'static str;

    /// One step of the rule with every hyperparameter resolved.
    type Step<T: Float>: Step<T>;

    /// Refuses hyperparameters that make no sense (negative rates, NaN).
    fn check(&self) -> Result<(), InvalidHyperparameter>;

    /// The learning rate before any schedule.
    fn learning_rate(&self) -> f64;

    /// How row_sparse gradients are applied.
    fn lazy_update(&self) -> LazyUpdate;

    /// The step at a given learning rate. `weight_decay_scale` multiplies the rule's weight decay (0 for
    /// parameters that are not decayed, such as biases).
    fn step<T: Float>(&self, learning_rate: f64, weight_decay_scale: f64) -> Self::Step<T>;
}

/// One step of an update rule on one weight.
pub trait Step<T: Float>: Copy + PartialEq + Debug + Send + Sync + 'static {
    /// What a weight carries from step to step. Starts at `Default::default()`.
    type State: StateBlock<T>;

    /// False where the state is never read or written with these hyperparameters (momentum 0), so that it
    /// need not be allocated.
    fn uses_state(&self) -> bool;

    /// The recurrence: `weight` and `state` after a step with gradient `grad`.
    fn update(&self, weight: &mut T, state: &mut Self::State, grad: T);

    /// What a step with gradient 0 does to (weight, state), or `None` where it changes nothing.
    fn idle(&self) -> Option<IdleMap>;

    /// Applies a (power of an) idle map to a weight and its state.
    fn apply_idle(map: &IdleMap, weight: &mut T, state: &mut Self::State);

    /// `Some(c)` where [`update`](Self::update) is `weight += c · grad`, to the bit on finite weights, and
    /// nothing else, so that a loop over weights can be just that. Only a shortcut: `None` is always right.
    fn gradient_factor(&self) -> Option<T> {
        None
    }
}

/// A fixed number of values that a weight carries: `()`, one value, or an array.
pub trait StateBlock<T>: Copy + Default + Debug + Send + Sync + 'static {
    /// The names of the values, in order, as checkpoints write them.
    fn values(&self) -> &[T];
    /// The values, for loading.
    fn values_mut(&mut self) -> &mut [T];
}

impl<T> StateBlock<T> for () {
    fn values(&self) -> &[T] {
        &[]
    }
    fn values_mut(&mut self) -> &mut [T] {
        &mut []
    }
}

impl<T: Float, const N: usize> StateBlock<T> for [T; N]
where
    [T; N]: Default,
{
    fn values(&self) -> &[T] {
        self
    }
    fn values_mut(&mut self) -> &mut [T] {
        self
    }
}
