//! The names of the update rules, and a flag for each of their hyperparameters.

use super::decay::decay;
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
    /// The rules that have it, each with its default.
    rules: Vec<(&'static str, Option<f64>)>,
}

/// The L2 penalty, which may be said for each table.
pub(crate) const L2: &str = "l2";

/// A flag for each hyperparameter that some rule has, in the order of the rules.
pub(crate) fn flags() -> Vec<Flag> {
    struct Collect<'a>(&'a mut Vec<Flag>);
    impl RuleVisitor for Collect<'_> {
        type Output = ();
        fn visit<R: UpdateRule>(self, mut rule: R) {
            for row in rule.hyperparameters() {
                let of_rule = (R::NAME, row.get());
                match self.0.iter_mut().find(|flag| flag.name == row.name) {
                    Some(flag) => flag.rules.push(of_rule),
                    None => self.0.push(Flag {
                        name: row.name,
                        meaning: row.meaning.trim(),
                        is_choice: row.bound == Bound::Flag,
                        rules: vec![of_rule],
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

impl Flag {
    /// The rules that have it by their defaults: `default 0.01 (sgd, dcasgd), 0.001 (adam)`;
    /// without the rules if they are all that there are, and agree.
    fn defaults(&self) -> String {
        let shown = |default: Option<f64>| match default {
            Some(number) => number.to_string(),
            None => "none".to_owned(),
        };
        let mut defaults: Vec<Option<f64>> = Vec::new();
        for (_, default) in &self.rules {
            if !defaults.contains(default) {
                defaults.push(*default);
            }
        }
        if let ([default], true) = (&defaults[..], self.rules.len() == NAMES.len()) {
            return format!("default {}", shown(*default));
        }
        let of_default = |default: &Option<f64>| {
            let rules = self.rules.iter().filter(|(_, other)| other == default);
            let names: Vec<&str> = rules.map(|(name, _)| *name).collect();
            format!("{} ({})", shown(*default), names.join(", "))
        };
        let parts: Vec<String> = defaults.iter().map(of_default).collect();
        format!("default {}", parts.join(", "))
    }
}

impl From<Flag> for Arg {
    fn from(flag: Flag) -> Arg {
        let arg = Arg::new(flag.name)
            .long(flag.name.replace('_', "-"))
            .value_name("NUMBER")
            .value_parser(value_parser!(f64))
            .allow_negative_numbers(true)
            .help(format!("{} [{}]", flag.meaning.trim_end_matches('.'), flag.defaults()))
            .help_heading("Hyperparameters of the update rule");
        let arg = if flag.name == L2 {
            arg.value_name("NUMBER|TABLE=NUMBER,…").value_parser(decay).help(format!(
                "{}, of all parameters but biases, or of each table: w=1e-5,v=1e-4 [{}]",
                flag.meaning.trim_end_matches('.'),
                flag.defaults()
            ))
        } else {
            arg
        };
        // What most programs call it.
        let arg = if flag.name == "learning_rate" { arg.visible_alias("lr") } else { arg };
        if flag.is_choice { arg.num_args(0..=1).default_missing_value("1") } else { arg }
    }
}

/// The names of the rules: those of the library, and those that correct the gradients that SGD
/// gets.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied().chain([Svrg::<Sgd>::NAME, Saga::<Sgd>::NAME])
}
