//! The names of the update rules, and a flag for each of their hyperparameters.

use clap::{Arg, value_parser};
use nnz::core::update_rules::{Bound, NAMES, RuleVisitor, Saga, Sgd, Svrg, UpdateRule, with_rule};

/// The flag of a hyperparameter.
pub(crate) struct Flag {
    /// The hyperparameter's name.
    pub(crate) name: &'static str,
    /// What it does, by the first rule that has it.
    meaning: &'static str,
    /// Whether it is a choice.
    is_choice: bool,
    /// The rules that have it.
    rules: Vec<&'static str>,
}

/// A flag for each hyperparameter that some rule has, in the order of the rules.
pub(crate) fn flags() -> Vec<Flag> {
    struct Collect<'a>(&'a mut Vec<Flag>);
    impl RuleVisitor for Collect<'_> {
        type Output = ();
        fn visit<R: UpdateRule>(self, mut rule: R) {
            for row in rule.hyperparameters() {
                match self.0.iter_mut().find(|flag| flag.name == row.name) {
                    Some(flag) => flag.rules.push(R::NAME),
                    None => self.0.push(Flag {
                        name: row.name,
                        meaning: row.meaning.trim(),
                        is_choice: row.bound == Bound::Flag,
                        rules: vec![R::NAME],
                    }),
                }
            }
        }
    }
    let mut flags = Vec::new();
    for name in NAMES {
        // Every name in the list is known.
        let _ = with_rule(name, Collect(&mut flags));
    }
    flags
}

impl From<Flag> for Arg {
    fn from(flag: Flag) -> Arg {
        let rules = if flag.rules.len() == NAMES.len() {
            String::new()
        } else {
            format!(" ({})", flag.rules.join(", "))
        };
        let arg = Arg::new(flag.name)
            .long(flag.name.replace('_', "-"))
            .value_name("NUMBER")
            .value_parser(value_parser!(f64))
            .allow_negative_numbers(true)
            .help(format!("{}{rules}", flag.meaning.trim_end_matches('.')))
            .help_heading("Hyperparameters of the update rule");
        if flag.is_choice { arg.num_args(0..=1).default_missing_value("1") } else { arg }
    }
}

/// The names of the rules: those of the library, and those that correct the gradients that SGD
/// gets.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied().chain([Svrg::<Sgd>::NAME, Saga::<Sgd>::NAME])
}
