//! Errors about names that are no numbers, and about numbers of another kind.

use super::Resolver;
use super::numbers::{NoConstant, Number, Reach};
use crate::arithmetic::{Arithmetic, Literal};
use crate::ast::AttributeText;
use crate::parse::NO_CAST;
use proc_macro2::Span;
use sparse_core::diagnostics::{Code, nearest};
use sparse_core::storage::Storage;
use std::rc::Rc;
use syn::Ident;

impl Resolver<'_> {
    /// Says why a name is no number.
    pub(super) fn refuse_number(&mut self, name: &Ident, span: Span) {
        let word = name.to_string();
        if self.frame.block.is_some() {
            let message = format!("`{word} as f64` is no number in a block");
            let help = format!(
                "give the block the number as a parameter, and where it is used write `{word} as f64`"
            );
            return self.error(Code::UnsupportedExpression, span, message, Some(help));
        }
        if self.numbers.dims.get(&word) == Some(&Reach::Label) {
            let message = format!(
                "the dimension `{word}` is known from labels alone, which outputs have not"
            );
            let help = format!("write a number, or declare an input that has the extent `{word}`");
            return self.error(Code::UnsupportedExpression, span, message, Some(help));
        }
        if self.frame.scope.contains_key(&word) {
            let message = "expected a value: a name, a number, an operator or a call".to_owned();
            return self.error(
                Code::UnsupportedExpression,
                span,
                message,
                Some(NO_CAST.to_owned()),
            );
        }
        let known = self.numbers.constants.keys().chain(self.numbers.dims.keys());
        let help = match nearest(&word, known.map(String::as_str)) {
            Some(known) => format!("write `{known} as f64`"),
            None => no_constant(&word),
        };
        let message = format!("no constant and no dimension is called `{word}`");
        self.error(Code::UnknownName, name.span(), message, Some(help));
    }

    /// The first entry of a list that is seen and no integer, and what it is.
    pub(super) fn no_integer(
        &mut self,
        entries: &[Option<Rc<Arithmetic>>],
    ) -> Option<(String, String)> {
        entries.iter().flatten().find_map(|entry| match self.number_of(entry) {
            Ok(Number::Seen(value)) if !matches!(value, Literal::Integer(_)) => {
                Some((entry.to_string(), value.to_string()))
            }
            _ => None,
        })
    }

    /// Why the text of an attribute is of another kind, and what to write: what a name is, or what
    /// a constant is.
    pub(super) fn why_no_constant(
        &mut self,
        text: &AttributeText,
    ) -> Option<(Ident, String, String)> {
        let name = match text {
            // That of a storage type is another kind of value.
            AttributeText::Word(word) if word.to_string().parse::<Storage>().is_ok() => {
                return None;
            }
            AttributeText::Word(word) => word.clone(),
            AttributeText::Arithmetic(arithmetic, _) => match self.number_of(arithmetic) {
                Err(NoConstant::Name(name)) => name,
                _ => return None,
            },
            AttributeText::Entries(entries) => {
                let mut names =
                    entries.iter().flatten().filter_map(|entry| match self.number_of(entry) {
                        Err(NoConstant::Name(name)) => Some(name),
                        _ => None,
                    });
                names.next()?
            }
            _ => return None,
        };
        let word = name.to_string();
        let (why, help) = if self.numbers.is_dimension(&word) && self.frame.block.is_none() {
            (
                format!("`{word}` is a dimension, which is known with the model or a batch"),
                format!("for a constant of Rust in its place declare `const {word};`"),
            )
        } else if self.frame.scope.contains_key(&word) {
            (
                format!("`{word}` is a value"),
                "for a constant write its name, or the path of one of Rust".to_owned(),
            )
        } else {
            let constants = self.numbers.constants.keys().map(String::as_str);
            let given = self.frame.attributes.keys().map(String::as_str);
            let is_of_model = self.frame.block.is_none();
            let help = match nearest(&word, constants.filter(|_| is_of_model).chain(given)) {
                Some(known) => format!("write `{known}`"),
                None if is_of_model => no_constant(&word),
                None => {
                    "a block sees its parameters, and constants of Rust by their paths, `crate::…`"
                        .to_owned()
                }
            };
            (format!("no constant is called `{word}`"), help)
        };
        Some((name, why, help))
    }
}

/// What to write for a constant of Rust.
pub(super) fn no_constant(word: &str) -> String {
    format!(
        "for a constant of Rust write its path, such as `crate::{word}`, or declare it in the model: `const {word};`, or with its type `const {word}: f32;`"
    )
}
