//! The update rule that the command line asks for, and what it penalises.

use super::arguments::{Arguments, Lazy};
use crate::Failure;
use crate::models::ModelKind;
use nnz::core::update_rules::{
    AdaGrad, Adam, Ftrl, LazyUpdate, RuleVisitor, Saga, Sgd, Step, Svrg, UnknownRule, UpdateRule,
    with_rule,
};
use nnz::table::Table;

/// The rule with the hyperparameters of the command line, checked.
pub(crate) fn configured<R: UpdateRule>(mut rule: R, arguments: &Arguments) -> Result<R, Failure> {
    rule.set_lazy_update(match arguments.lazy_update {
        Lazy::Exact => LazyUpdate::Exact,
        Lazy::Touched => LazyUpdate::Touched,
        Lazy::Dense => LazyUpdate::Dense,
    });
    let flags = arguments.hyperparameters.iter().copied();
    let settings = arguments.set.iter().map(|(name, number)| (&name[..], *number));
    let mut given: Vec<(&str, &str)> = Vec::new();
    for (said, number) in flags.chain(settings) {
        // An L2 penalty is the weight decay of most rules.
        let is_decay = said == "l2" && value(&mut rule, said).is_none();
        let name = if is_decay { "weight_decay" } else { said };
        if let Some((_, before)) = given.iter().find(|(earlier, _)| *earlier == name) {
            let message =
                format!("`{name}` is given twice, as `{before}` and as `{said}`: say it once");
            return Err(message.into());
        }
        rule.set(name, number)?;
        given.push((name, said));
    }
    rule.check()?;
    Ok(rule)
}

/// Calls the visitor with the rule of one of the [`names`](super::hyperparameter_flags::names).
pub(crate) fn with<V: RuleVisitor>(name: &str, visitor: V) -> Result<V::Output, UnknownRule> {
    match name {
        name if name == Svrg::<Sgd>::NAME => Ok(visitor.visit(Svrg::<Sgd>::default())),
        name if name == Saga::<Sgd>::NAME => Ok(visitor.visit(Saga::<Sgd>::default())),
        name => with_rule(name, visitor),
    }
}

/// The rules of some models and of variants of others: each pair of a model and a rule is compiled.
pub(crate) const FEW: [&str; 4] = [Sgd::NAME, AdaGrad::NAME, Ftrl::NAME, Adam::NAME];

/// [`with`] of the [few](FEW).
pub(crate) fn with_few<V: RuleVisitor>(name: &str, visitor: V) -> Result<V::Output, UnknownRule> {
    match name {
        name if name == Sgd::NAME => Ok(visitor.visit(Sgd::default())),
        name if name == AdaGrad::NAME => Ok(visitor.visit(AdaGrad::default())),
        name if name == Ftrl::NAME => Ok(visitor.visit(Ftrl::default())),
        name if name == Adam::NAME => Ok(visitor.visit(Adam::default())),
        name => Err(UnknownRule { name: name.to_owned() }),
    }
}

/// Refuses a rule by which a model is not trained.
pub(super) fn check_few(kind: ModelKind, name: &str) -> Result<(), String> {
    if !kind.has_few_rules() || FEW.contains(&name) {
        return Ok(());
    }
    Err(format!(
        "--optimizer {name} is not for this model, with its weights and layers: choose {}",
        FEW.join(", ")
    ))
}

/// Refuses what [`configured`] would refuse, before any data is read.
pub(crate) fn check(arguments: &Arguments) -> Result<Result<(), Failure>, UnknownRule> {
    struct Check<'a>(&'a Arguments);
    impl RuleVisitor for Check<'_> {
        type Output = Result<(), Failure>;
        fn visit<R: UpdateRule>(self, rule: R) -> Self::Output {
            configured(rule, self.0).map(drop)
        }
    }
    with(&arguments.optimizer, Check(arguments))
}

/// The penalties that a rule applies at every step, as the objective counts them beside the mean
/// loss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Penalty {
    l1: f64,
    l2: f64,
}

impl Penalty {
    /// That of a rule. One without weight decay (FTRL) penalises all steps together, and not each;
    /// one whose decay is beside an adaptive step (AdamW) minimises no sum of a loss and a penalty.
    pub(crate) fn of<R: UpdateRule>(rule: &R) -> Penalty {
        let mut rule = rule.clone();
        match value(&mut rule, "weight_decay") {
            Some(l2) if is_minimised(&rule) => {
                Penalty { l1: value(&mut rule, "l1").unwrap_or(0.0), l2 }
            }
            _ => Penalty::default(),
        }
    }

    /// `l1 · |w|₁ + (l2 / 2) · |w|²`.
    pub(crate) fn at(self, weights: &Table<f32>) -> f64 {
        if self == Penalty::default() {
            return 0.0;
        }
        let norms = weights.norms();
        self.l1 * norms.l1 + self.l2 / 2.0 * norms.sum_of_squares
    }
}

/// Whether a rule with weight decay minimises the loss plus the penalty: its step stays where their
/// gradients cancel.
fn is_minimised<R: UpdateRule>(rule: &R) -> bool {
    const WEIGHT: f64 = 3.0;
    let mut rule = rule.clone();
    // Of what the rule has: penalties that count, and nothing clipped.
    for (name, number) in [("weight_decay", 1.0), ("l1", 1.0), ("clip_gradient", f64::INFINITY)] {
        let _ = rule.set(name, number);
    }
    let of_penalty = WEIGHT + value(&mut rule, "l1").unwrap_or(0.0);
    let (mut weight, mut state) = (WEIGHT, Default::default());
    rule.step::<f64>(0.25, 1.0, 0).update(&mut weight, &mut state, -of_penalty);
    (weight - WEIGHT).abs() < 1e-9
}

/// The value of a hyperparameter, if the rule has it.
fn value<R: UpdateRule>(rule: &mut R, name: &str) -> Option<f64> {
    rule.hyperparameters().iter().find(|row| row.name == name)?.get()
}
