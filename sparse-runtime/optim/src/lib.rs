//! Update rules: what a gradient does to a weight, each stated once.
//!
//! A rule gives its hyperparameters with their bounds ([`UpdateRule::hyperparameters`]), the
//! recurrence of one step on one weight ([`Step::update`]), the state that the weight carries
//! ([`Step::State`]) and what a step *without* gradient does ([`Step::idle`]), as a map that
//! composes. The runtime derives the dense, exact and touched-rows updates from these and from
//! nothing else; checks, command lines and the refusal of `Exact` where there is no closed form
//! follow too.
//!
//! The rate of a rule is its field `learning_rate`. For a field that a rule lacks, such as `lr`,
//! rustc proposes the one that is spelt most like it, `l1`.
//!
//! A rule is one file, which states it once by `update_rule!`, and its name in the list of
//! `names.rs`. The page of all rules with their formulas and hyperparameters, `docs/optimizers.md`,
//! is made from these statements.
//!
//! **Invariant.** What a rule does is stated once: its formula in Rust, its formula in text and the
//! closed form of its idle steps are held to each other by tests.
//!
//! **Must not know** tables, arrays, models or training.

mod adadelta;
mod adagrad;
mod adam;
mod adamax;
mod adamw;
mod centered_rmsprop;
mod dcasgd;
mod error;
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

mod hogwild;
mod powers;
mod recurrence;
mod reduced;
mod rmsprop;
mod rule;
mod saga;
mod sgd;
mod signum;
mod state;
mod step;
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
pub use error::{InvalidHyperparameter, RuleError};
pub use ftml::{Ftml, FtmlMap, FtmlStep};
pub use ftrl::{Ftrl, FtrlStep, LeaderMap};
pub use group_adagrad::{GroupAdaGrad, GroupAdaGradStep};
pub use hogwild::Racing;
pub use hyperparameters::{Bound, Hyperparameter, Setting};
pub use idle::IdleHistory;
pub use idle_means::MeanMap;
pub use lamb::{Lamb, LambStep};
pub use maps::{DriftMap, IdleMap, MatrixMap, ScaleMap, ShrinkMap};
pub use mean_run::MeanRun;
pub use nadam::{Nadam, NadamStep};
pub use names::{BuiltIn, NAMES, RuleVisitor, UnknownRule, with_rule};
pub use powers::Runs;
pub use recurrence::{
    IdleRecurrence, MOST_IDLE_NUMBERS, MOST_NUMBERS, NormRecurrence, Recurrence, RowRecurrence,
};
pub use reduced::{Correction, ReducedState, ReducedStep, VarianceReduction};
pub use rmsprop::{RmsProp, RmsPropStep};
pub use saga::Saga;
pub use sgd::{Sgd, SgdMap, SgdStep};
pub use signum::{SignMap, Signum, SignumStep};
pub use state::{OfRow, StateBlock};
pub use step::{Idle, Step};
pub use suffixes::Suffixes;
pub use svrg::Svrg;

use serde::{Deserialize, Serialize};
use sparse_core::element::Float;
use std::fmt::Debug;

/// How the rows of a `row_sparse` gradient reach a parameter and its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LazyUpdate {
    /// The mathematics of the dense update at the cost of the sparse one: a row that batches did
    /// not touch is brought up to date in closed form when it is next read. The default.
    #[default]
    Exact,
    /// Only the rows of the gradient change, weights and states (MXNet's `lazy_update = True`): an
    /// approximation wherever an idle step is not the identity.
    Touched,
    /// Every row changes at every step: O(rows) a step. For comparison.
    Dense,
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

    /// Which rule of the library it is. `None` for all others: leave it as it is.
    #[doc(hidden)]
    const BUILT_IN: Option<BuiltIn> = None;

    /// What it does, in Markdown: a sentence, the recurrence, what is known of idle steps, the
    /// source.
    const ABOUT: &'static str = "";

    /// The names of what a weight carries, in the order of [`StateBlock::values`].
    const STATES: &'static [&'static str] = &[];

    /// The recurrence as formulas, for devices that compile it; a rule without it runs on the host
    /// only.
    const RECURRENCE: Option<Recurrence> = None;

    /// True of a rule that corrects gradients by a mean gradient, see
    /// [`variance_reduction`](Self::variance_reduction).
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

    /// The hyperparameters without which no state of the rule gives a weight that is not 0: one of
    /// them must be above 0 where [`Step::implied_state`] is to be something. None for rules whose
    /// weights do not follow from their states.
    const GIVES_WEIGHTS: &'static [&'static str] = &[];

    /// One step of the rule with every hyperparameter resolved.
    type Step<T: Float>: Step<T>;

    /// The hyperparameters by name, each with what it may be, in the order of the fields.
    fn hyperparameters(&mut self) -> Vec<Hyperparameter<'_>>;

    /// The learning rate before any schedule.
    fn learning_rate(&self) -> f64;

    /// Where a step depends on how many were made before it: the number of steps after which it no
    /// longer does. 0 where a step is like any other.
    fn counts_until(&self) -> u64 {
        0
    }

    /// How a rule corrects the gradient of a batch before it uses it, if it does: what a trainer
    /// must prepare, in between epochs and for each step.
    fn variance_reduction(&self) -> Option<VarianceReduction> {
        None
    }

    /// How row_sparse gradients are applied.
    fn lazy_update(&self) -> LazyUpdate;

    /// Chooses how row_sparse gradients are applied.
    fn set_lazy_update(&mut self, lazy_update: LazyUpdate);

    /// The step at a given learning rate, after `clock` others. `penalty_scale` multiplies the
    /// rule's penalties: weight decay and L1 (0 for parameters that are not to be shrunk, such as
    /// biases).
    fn step<T: Float>(&self, learning_rate: f64, penalty_scale: f64, clock: u64) -> Self::Step<T>;

    /// Sets a hyperparameter by name. Whether a number makes sense is for [`check`](Self::check) to
    /// say; a choice, which cannot keep any other, is 0 or 1.
    ///
    /// # Errors
    ///
    /// [`RuleError::UnknownHyperparameter`], with the names that there are;
    /// [`RuleError::Hyperparameter`] for another number as a choice.
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

    /// Refuses hyperparameters that make no sense (negative rates, NaN), [`LazyUpdate::Exact`]
    /// where idle steps have no closed form, and all but [`LazyUpdate::Dense`] where a step depends
    /// on a whole parameter.
    ///
    /// # Errors
    ///
    /// [`RuleError::Hyperparameter`] for the first outside its bound; [`RuleError::NoClosedForm`];
    /// [`RuleError::CoupledDecay`]; [`RuleError::NeedsAllRows`].
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
