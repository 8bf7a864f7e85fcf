//! Names that cannot be names: what was declared in their place, so that their uses are no errors
//! too.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use std::collections::BTreeMap;

/// Words with which Rust and the language begin something: in the place of a name they stay what
/// they are.
const BEGINNINGS: &[&str] =
    &["as", "const", "crate", "false", "let", "mut", "pub", "self", "super", "true", "use"];

/// Words that were refused as names, and the names in their place.
#[derive(Default)]
pub(super) struct Refused(BTreeMap<String, String>);

impl Refused {
    /// A name that was written, and what is declared instead of it.
    pub(super) fn insert(&mut self, written: &Ident, declared: &Ident) {
        let (written, declared) = (written.to_string(), declared.to_string());
        if written != declared && !BEGINNINGS.contains(&written.as_str()) {
            self.0.insert(written, declared);
        }
    }

    /// The tokens with the names that are declared. The tokens themselves where no name was
    /// refused.
    pub(super) fn replace(&self, tokens: TokenStream) -> TokenStream {
        if self.0.is_empty() {
            return tokens;
        }
        let token = |token| match token {
            TokenTree::Ident(word) => TokenTree::Ident(match self.0.get(&word.to_string()) {
                Some(declared) => Ident::new(declared, word.span()),
                None => word,
            }),
            TokenTree::Group(group) => {
                let mut replaced = Group::new(group.delimiter(), self.replace(group.stream()));
                replaced.set_span(group.span());
                TokenTree::Group(replaced)
            }
            other => other,
        };
        tokens.into_iter().map(token).collect()
    }
}
