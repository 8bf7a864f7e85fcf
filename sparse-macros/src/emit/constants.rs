//! The constants of a model that are extents, as expressions of Rust.

use crate::ast::{Declaration, Model};
use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use sparse_core::shapes::{Derived, Dim, Substitution};
use std::collections::BTreeSet;
use syn::Ident;

/// Each constant with its value, in which the constants above it have their names. Of `const A = 3; const B = 2 * A;`, `B` is
///
/// ```text
/// { const __ABOVE: usize = 3; { const A: usize = __ABOVE; 2 * A } }
/// ```
///
/// A value is computed where the names of those below it are not seen: `const A = A + 1;` reads the `A` of the module. After them come the extents
/// that follow from constants: sums, products and parts.
pub(super) fn constants(
    model: &Model,
    extents: &Substitution,
    rt: &TokenStream,
) -> Vec<(String, TokenStream)> {
    let mut constants = declared(model, rt);
    let derived = extents.derived().filter_map(|name| {
        let value = extent(&Dim::Named(name.to_owned()), extents, &constants, rt)?;
        Some((name.to_owned(), value))
    });
    let derived = Vec::from_iter(derived);
    constants.extend(derived);
    constants
}

/// An extent that is a number, a declared constant, or follows from these.
fn extent(
    dim: &Dim,
    extents: &Substitution,
    declared: &[(String, TokenStream)],
    rt: &TokenStream,
) -> Option<TokenStream> {
    let name = match dim {
        Dim::Size(size) => {
            let size = usize::try_from(*size).ok()?;
            return Some(quote!(#size));
        }
        Dim::Named(name) => name,
        Dim::Unknown(_) => return None,
    };
    let Some(derived) = extents.derivation(name) else {
        return declared.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    };
    let value = |term: &Dim| extent(term, extents, declared, rt);
    Some(match derived {
        Derived::Sum([a, b]) => {
            let (a, b) = (value(a)?, value(b)?);
            quote!((#a) + (#b))
        }
        Derived::Product([a, b]) => {
            let (a, b) = (value(a)?, value(b)?);
            quote!((#a) * (#b))
        }
        Derived::Part { of, bounds } => {
            let of = value(of)?;
            let bounds = bounds.map(|bound| match bound {
                Some(bound) => quote!(#rt::Option::Some(#bound)),
                None => quote!(#rt::Option::None),
            });
            quote!(#rt::Span::new(#(#bounds,)* #of).len)
        }
    })
}

fn declared(model: &Model, rt: &TokenStream) -> Vec<(String, TokenStream)> {
    let written: Vec<Written<'_>> = model
        .declarations
        .iter()
        .filter_map(|declaration| match declaration {
            Declaration::Constant { name, value } => {
                let mut words = BTreeSet::new();
                collect_words(value.clone(), &mut words);
                Some(Written { name, word: name.to_string(), value, words })
            }
            _ => None,
        })
        .collect();
    let constants = written.iter().enumerate();
    constants.map(|(index, constant)| (constant.word.clone(), value(&written, index, rt))).collect()
}

/// A constant as it is written, and the words in its value.
struct Written<'a> {
    name: &'a Ident,
    word: String,
    value: &'a TokenStream,
    words: BTreeSet<String>,
}

/// The value of a constant, in a block for each constant above it that it needs.
fn value(constants: &[Written<'_>], index: usize, rt: &TokenStream) -> TokenStream {
    let mut needed: BTreeSet<&str> = constants[index].words.iter().map(String::as_str).collect();
    let mut tokens = constants[index].value.clone();
    for Written { name, word, value, words } in constants[..index].iter().rev() {
        if needed.contains(word.as_str()) {
            needed.extend(words.iter().map(String::as_str));
            tokens = quote! {{
                const __ABOVE: #rt::usize = #value;
                {
                    #[allow(dead_code, non_upper_case_globals)]
                    const #name: #rt::usize = __ABOVE;
                    #tokens
                }
            }};
        }
    }
    tokens
}

pub(super) fn collect_words(tokens: TokenStream, words: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(word) => {
                words.insert(word.to_string());
            }
            TokenTree::Group(group) => collect_words(group.stream(), words),
            _ => {}
        }
    }
}
