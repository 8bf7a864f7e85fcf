//! What is refused of update rules and their hyperparameters.

use super::{LazyUpdate, UnknownRule};

sparse_core::debug_of_errors!(InvalidHyperparameter, RuleError, UnknownRule);

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
    /// Another mode than `LazyUpdate::Dense` of a rule whose steps depend on
    /// [norms](crate::Step::BY_NORMS) of a whole parameter.
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
