//! The constants of a model that are extents, as expressions of Rust.

use crate::arithmetic::Literal;
use crate::ast::{Constant, Declaration, Model};
use crate::resolve::Unnamed;
use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use sparse_core::shapes::{Bound, Derived, Dim, Substitution};
use std::collections::{BTreeMap, BTreeSet};

/// Each constant with its value, in which the constants above it have their names. Of
/// `const A = 3; const B = 2 * A;`, `B` is
///
/// ```text
/// { const __ABOVE: usize = 3; { const A: usize = __ABOVE; 2 * A } }
/// ```
///
/// A value is computed where the names of those below it are not seen: `const A = A + 1;` reads the
/// `A` of the module. After them come the extents that follow from constants: sums, products and
/// parts.
pub(super) fn constants(
    model: &Model,
    unnamed: &[Unnamed],
    extents: &Substitution,
    rt: &TokenStream,
) -> Vec<(String, TokenStream)> {
    let mut constants = declared(model, unnamed, rt);
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
            let bound = |bound: &Option<Bound>| {
                Some(match bound {
                    Some(Bound::Number(bound)) => quote!(#rt::Option::Some(#bound)),
                    Some(Bound::Extent(dim)) => {
                        let bound = value(dim)?;
                        quote!(#rt::Option::Some({ const __EXTENT: #rt::usize = #bound; __EXTENT } as i64))
                    }
                    None => quote!(#rt::Option::None),
                })
            };
            let bounds = [bound(&bounds[0])?, bound(&bounds[1])?, bound(&bounds[2])?];
            quote!(#rt::Span::new(#(#bounds,)* #of).len)
        }
    })
}

fn declared(model: &Model, unnamed: &[Unnamed], rt: &TokenStream) -> Vec<(String, TokenStream)> {
    let of_model = model.declarations.iter().filter_map(|declaration| match declaration {
        Declaration::Constant(constant) => Some(Written::new(
            Some(constant).filter(|constant| !constant.is_in_scope()),
            constant.name.to_string(),
            &constant.value,
        )),
        _ => None,
    });
    let unnamed = unnamed.iter().map(|(name, value)| Written::new(None, name.clone(), value));
    let written: Vec<Written<'_>> = of_model.chain(unnamed).collect();
    let constants = written.iter().enumerate();
    constants
        .map(|(index, constant)| (constant.word.clone(), value(model, &written, index, rt)))
        .collect()
}

/// A constant as it is written, and the words in its value.
struct Written<'a> {
    /// The declaration of one that those below it see by a name of its own.
    declared: Option<&'a Constant>,
    word: String,
    value: &'a TokenStream,
    words: BTreeSet<String>,
}

impl<'a> Written<'a> {
    fn new(declared: Option<&'a Constant>, word: String, value: &'a TokenStream) -> Self {
        let mut words = BTreeSet::new();
        collect_words(value.clone(), &mut words);
        Written { declared, word, value, words }
    }
}

/// The type of a constant: the one that is written, or that of its value where the macro sees it;
/// else that of an extent.
pub(super) fn type_of(model: &Model, constant: &Constant, rt: &TokenStream) -> TokenStream {
    let mut seen: BTreeMap<String, Literal> = BTreeMap::new();
    for declaration in &model.declarations {
        let Declaration::Constant(known) = declaration else { continue };
        let value = known.arithmetic.as_ref();
        let value =
            value.and_then(|value| value.value(&|name| seen.get(&name.to_string()).copied()));
        let value = value.and_then(|value| match &known.ty {
            Some(ty) => value.cast(&ty.to_string()),
            None => Some(value),
        });
        seen.extend(value.map(|value| (known.name.to_string(), value)));
        if known.name == constant.name {
            break;
        }
    }
    match (&constant.ty, seen.get(&constant.name.to_string())) {
        (Some(ty), _) => quote!(#rt::#ty),
        (None, Some(Literal::Flag(_))) => quote!(#rt::bool),
        (None, Some(Literal::Integer(integer))) if *integer < 0 => quote!(#rt::i64),
        (None, Some(Literal::Single(_))) => quote!(#rt::f32),
        (None, Some(Literal::Number(_))) => quote!(#rt::f64),
        (None, _) => quote!(#rt::usize),
    }
}

/// The value of a constant, in a block for each constant above it that it needs.
fn value(model: &Model, constants: &[Written<'_>], index: usize, rt: &TokenStream) -> TokenStream {
    let mut needed: BTreeSet<&str> = constants[index].words.iter().map(String::as_str).collect();
    let mut tokens = constants[index].value.clone();
    for Written { declared, word, value, words } in constants[..index].iter().rev() {
        let Some(constant) = declared else { continue };
        if needed.contains(word.as_str()) {
            needed.extend(words.iter().map(String::as_str));
            let (name, ty) = (&constant.name, type_of(model, constant, rt));
            tokens = quote! {{
                const __ABOVE: #ty = #value;
                {
                    #[allow(dead_code, non_upper_case_globals)]
                    const #name: #ty = __ABOVE;
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
