//! Numbers that the macro does not see, as expressions of Rust.

use super::context::Emit;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use sparse_core::formula::{BinaryOperator, Formula};
use sparse_core::ir::{Apply, Kind, ValueId};
use sparse_core::operators::Attribute;
use sparse_core::shapes::Dim;
use sparse_core::storage::Storage;

/// The numbers of a model that are known with a batch, as variables of an emitted function, in
/// terms of `__extents` and `__batch`. For `x / (n as f64)`
///
/// ```text
/// let __number_3: f32 = <f32 as Float>::of({ use {Float as _, …}; type __N = f64;
/// (__batch.x.n_rows() as f64) });
/// ```
pub(super) fn variables(emit: &Emit<'_>) -> TokenStream {
    let (rt, element) = (&emit.rt, &emit.element);
    let numbers = emit.graph.ids().filter_map(|id| match &emit.graph.value(id).kind {
        Kind::Named(formula) => {
            let (name, number) = (variable(id), number(emit, formula));
            Some(quote!(let #name: #element = <#element as #rt::Float>::of(#number);))
        }
        _ => None,
    });
    numbers.collect()
}

/// The variable of a number.
pub(super) fn variable(id: ValueId) -> Ident {
    format_ident!("__number_{}", id.0)
}

/// A formula in names, of type `f64`.
fn number(emit: &Emit<'_>, formula: &Formula) -> TokenStream {
    let rt = &emit.rt;
    let number = crate::scalar::tokens(formula, &quote!(__N), &|name| named(emit, name));
    quote!({
        #[allow(unused_imports)]
        use #rt::{Float as _, ScalarFunctions as _};
        #[allow(dead_code)]
        type __N = #rt::f64;
        #number
    })
}

/// A name, as a number of type `f64`.
fn named(emit: &Emit<'_>, name: &str) -> TokenStream {
    let rt = &emit.rt;
    let extent = constant(emit, name).or_else(|| {
        let extent = emit.fixed_extent(&Dim::Named(name.to_owned()));
        let extent = extent.or_else(|| of_batch(emit, name))?;
        Some(quote!((#extent as #rt::f64)))
    });
    // What has no extent was reported.
    extent.unwrap_or_else(|| quote!(::core::unreachable!()))
}

/// An extent of a batch.
fn of_batch(emit: &Emit<'_>, name: &str) -> Option<TokenStream> {
    let graph = emit.graph;
    let inputs = || graph.ids().filter(|id| matches!(graph.value(*id).kind, Kind::Input));
    inputs().find_map(|id| {
        let dim = Dim::Named(name.to_owned());
        let axis = graph.shape(id).iter().position(|known| *known == dim)?;
        let field = emit.declared(id);
        Some(match (graph.storage(id), axis) {
            (Storage::Csr, 0) => quote!(__batch.#field.n_rows()),
            (Storage::Csr, _) => quote!(__batch.#field.n_cols()),
            _ => quote!(__batch.#field.shape()[#axis]),
        })
    })
}

/// A constant of Rust as a number of type `f64`, which the compiler of Rust computes.
///
/// ```text
/// { const __NUMBER: f64 = (crate::DELTA) as f64; __NUMBER }
/// ```
pub(super) fn constant(emit: &Emit<'_>, name: &str) -> Option<TokenStream> {
    let rt = &emit.rt;
    let (_, value) = emit.constants.iter().find(|(known, _)| known == name)?;
    Some(quote!({
        #[allow(trivial_numeric_casts, clippy::unnecessary_cast)]
        const __NUMBER: #rt::f64 = (#value) as #rt::f64;
        __NUMBER
    }))
}

/// An attribute that is a constant of Rust, of type `f64`.
pub(super) fn attribute(emit: &Emit<'_>, apply: &Apply, name: &str) -> Option<TokenStream> {
    constant(emit, apply.attributes.name(name)?)
}

/// A constant of Rust as an extent, of type `i64`.
///
/// ```text
/// ({ const __EXTENT: usize = crate::FIELDS; __EXTENT } as i64)
/// ```
pub(super) fn extent(emit: &Emit<'_>, name: &str) -> Option<TokenStream> {
    let extent = emit.constant(name)?;
    Some(quote!((#extent as i64)))
}

/// Whether an attribute's numbers are integers.
pub(super) fn is_extent(operator: &str, attribute: &str) -> bool {
    let operator = sparse_core::operators::find(operator);
    let known = operator.and_then(|operator| operator.attribute(attribute));
    known.is_some_and(|known: &Attribute| known.is_extent)
}

/// A [constant formula](Formula::is_constant) in names of constants, as a constant expression of
/// type `f64`.
pub(super) fn constant_formula(emit: &Emit<'_>, formula: &Formula) -> Option<TokenStream> {
    let of = |formula: &Formula| constant_formula(emit, formula);
    Some(match formula {
        Formula::Number(number) => super::literals::any_number(*number),
        Formula::Name(name) => constant(emit, name)?,
        Formula::Negate(inner) => {
            let inner = of(inner)?;
            quote!((-#inner))
        }
        Formula::Binary(sign, lhs, rhs) => {
            let (x, y) = (of(lhs)?, of(rhs)?);
            match sign {
                BinaryOperator::Add => quote!((#x + #y)),
                BinaryOperator::Subtract => quote!((#x - #y)),
                BinaryOperator::Multiply => quote!((#x * #y)),
                BinaryOperator::Divide => quote!((#x / #y)),
                compare => {
                    let sign: TokenStream = compare.symbol().parse().ok()?;
                    quote!((if #x #sign #y { 1.0f64 } else { 0.0f64 }))
                }
            }
        }
        Formula::Call(name, operands, _) => {
            let operands = operands.iter().map(of).collect::<Option<Vec<_>>>()?;
            match (name.as_str(), &operands[..]) {
                ("max", [x, y]) => {
                    quote!({ let (x, y): (f64, f64) = (#x, #y); if x < y { y } else { x } })
                }
                ("min", [x, y]) => {
                    quote!({ let (x, y): (f64, f64) = (#x, #y); if x > y { y } else { x } })
                }
                ("abs", [x]) => quote!({ let x: f64 = #x; if x < 0.0 { -x } else { x } }),
                ("select", [c, x, y]) => quote!((if #c != 0.0f64 { #x } else { #y })),
                _ => return None,
            }
        }
    })
}
