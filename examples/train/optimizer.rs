//! The update rule that the command line asks for, and what it penalises.

use crate::arguments::{Arguments, Lazy};
use nnz::core::update_rules::{
    LazyUpdate, RuleError, RuleVisitor, UnknownRule, UpdateRule, with_rule,
};

/// The rule with the hyperparameters of the command line, checked.
pub(crate) fn configured<R: UpdateRule>(
    mut rule: R,
    arguments: &Arguments,
) -> Result<R, RuleError> {
    rule.set_lazy_update(match arguments.lazy_update {
        Lazy::Exact => LazyUpdate::Exact,
        Lazy::Touched => LazyUpdate::Touched,
        Lazy::Dense => LazyUpdate::Dense,
    });
    let l2 = if value(&mut rule, "l2").is_some() { "l2" } else { "weight_decay" };
    let options = [
        ("learning_rate", arguments.learning_rate),
        ("momentum", arguments.momentum),
        ("l1", arguments.l1),
        (l2, arguments.l2),
    ];
    for (name, number) in options {
        if let Some(number) = number {
            rule.set(name, number)?;
        }
    }
    for (name, number) in &arguments.set {
        rule.set(name, *number)?;
    }
    rule.check()?;
    Ok(rule)
}

/// Refuses what [`configured`] would refuse, before any data is read.
pub(crate) fn check(arguments: &Arguments) -> Result<Result<(), RuleError>, UnknownRule> {
    struct Check<'a>(&'a Arguments);
    impl RuleVisitor for Check<'_> {
        type Output = Result<(), RuleError>;
        fn visit<R: UpdateRule>(self, rule: R) -> Self::Output {
            configured(rule, self.0).map(drop)
        }
    }
    with_rule(&arguments.optimizer, Check(arguments))
}

/// The penalties that a rule applies at every step, as the objective counts them beside the mean loss.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Penalty {
    l1: f64,
    l2: f64,
}

impl Penalty {
    /// That of a rule. One without weight decay (FTRL) penalises all steps together, and not each.
    pub(crate) fn of<R: UpdateRule>(rule: &R) -> Penalty {
        let mut rule = rule.clone();
        match value(&mut rule, "weight_decay") {
            Some(l2) => Penalty { l1: value(&mut rule, "l1").unwrap_or(0.0), l2 },
            None => Penalty::default(),
        }
    }

    /// `l1 · |w|₁ + (l2 / 2) · |w|²`.
    pub(crate) fn at(self, weights: &[f32]) -> f64 {
        let each = |w: f64| self.l1 * w.abs() + self.l2 / 2.0 * w * w;
        weights.iter().map(|&w| each(f64::from(w))).sum()
    }
}

/// The value of a hyperparameter, if the rule has it.
fn value<R: UpdateRule>(rule: &mut R, name: &str) -> Option<f64> {
    rule.hyperparameters().iter().find(|row| row.name == name)?.get()
}
