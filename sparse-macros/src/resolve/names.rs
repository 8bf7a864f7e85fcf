//! Names: what they mean, and which of them nothing reads.

use super::Resolver;
use super::number_faults::no_constant;
use crate::ast::{Declaration, Model};
use sparse_core::diagnostics::{Code, nearest};
use sparse_core::ir::ValueId;
use sparse_core::operators;
use syn::Ident;

/// The names of values that a model declares.
pub(super) fn declared(model: &Model) -> impl Iterator<Item = &Ident> {
    model.declarations.iter().filter_map(|declaration| match declaration {
        Declaration::Input(input) => Some(&input.name),
        Declaration::Parameter(parameter) => Some(&parameter.name),
        Declaration::Let(binding) => Some(&binding.name),
        _ => None,
    })
}

impl Resolver<'_> {
    /// The value of a name.
    pub(super) fn name(&mut self, name: &Ident) -> ValueId {
        let word = name.to_string();
        if let Some(id) = self.frame.scope.get(&word).copied() {
            if self.frame.block.is_none() {
                self.read.insert(word);
            }
            return id;
        }
        if let Some(number) = self.constant_value(name) {
            return number;
        }
        if self.frame.block.is_none() && self.below.contains(&word) {
            let message = format!("`{word}` is used before it is declared");
            let help = Some(format!("move the declaration of `{word}` up"));
            self.error(Code::UsedBefore, name.span(), message, help);
            return self.poison(name.span());
        }
        let help = nearest(&word, self.frame.scope.keys().map(String::as_str))
            .map(|known| format!("a value `{known}` is declared above"));
        let help = help.or_else(|| {
            operators::find(&word).map(|_| format!("`{word}` is an operator: write `{word}(…)`"))
        });
        let help = help.or_else(|| self.of_rust(&word));
        let is_output = self.graph.outputs.iter().any(|output| output.name == word);
        let help = if is_output && self.frame.block.is_none() {
            Some(format!(
                "an output is no value: write `let {word} = …;` and then `output {word};`"
            ))
        } else {
            help.or_else(|| self.few_declared())
        };
        let message = format!("no value is called `{word}`");
        self.error(Code::UnknownName, name.span(), message, help);
        self.poison(name.span())
    }

    /// All that could be meant, if that is little.
    fn few_declared(&self) -> Option<String> {
        const FEW: usize = 6;
        let known = self.frame.scope.iter().filter(|(_, id)| !self.graph.value(**id).broken);
        let mut known: Vec<(ValueId, &String)> = known.map(|(name, id)| (*id, name)).collect();
        known.sort_unstable();
        let names: Vec<&str> = known.iter().map(|(_, name)| name.as_str()).collect();
        (1..=FEW)
            .contains(&names.len())
            .then(|| format!("declared above are `{}`", names.join("`, `")))
    }

    /// What to write for a dimension or a constant of Rust, which are no values.
    fn of_rust(&self, word: &str) -> Option<String> {
        if self.frame.block.is_some() {
            return None;
        }
        if self.numbers.is_dimension(word) {
            return Some(format!("`{word}` is a dimension: as a number write `{word} as f64`"));
        }
        let is_upper = word.to_lowercase() != word && word.to_uppercase() == word;
        (word.len() > 1 && is_upper).then(|| no_constant(word))
    }

    /// Says which values nothing reads. As in Rust, a name that begins with `_` is not asked for.
    pub(super) fn check_read(&mut self, model: &Model) {
        for declaration in &model.declarations {
            let (code, name, what) = match declaration {
                Declaration::Input(input) if input.is_label => {
                    (Code::UnusedInput, &input.name, "label")
                }
                Declaration::Input(input) => (Code::UnusedInput, &input.name, "input"),
                Declaration::Let(binding) => (Code::UnusedValue, &binding.name, "value"),
                // With a loss, a parameter that is not read is an error of its own.
                Declaration::Parameter(parameter) if self.graph.losses.is_empty() => {
                    (Code::UnusedValue, &parameter.name, "parameter")
                }
                _ => continue,
            };
            let word = name.to_string();
            if word.starts_with('_') || self.read.contains(&word) {
                continue;
            }
            let message = format!("nothing reads the {what} `{word}`");
            let help = format!("remove it, or call it `_{word}` if that is meant");
            self.report.error(code, name.span(), message, Some(help));
        }
    }
}
