//! Assertions about constants of Rust, whose values only the Rust compiler sees.

use super::context::Emit;
use super::numbers;
use crate::report::Report;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use sparse_core::diagnostics::{Code, Diagnostic};
use sparse_core::ir::{Assumption, NumberCondition};
use sparse_core::shapes::{Assumed, Dim, Relation};

/// At the user's token:
///
/// ```text
/// const _: () = assert!({ const __EXTENT: usize = CLASSES; __EXTENT } == 12,
///     "[NNZ0212] `add` needs …");
/// ```
pub(super) fn assumptions(
    emit: &Emit<'_>,
    assumptions: &[&Assumption],
    conditions: &[&NumberCondition],
    report: &Report,
) -> TokenStream {
    let assumptions = assumptions.iter();
    let assumptions =
        assumptions.filter_map(|assumption| self::assumption(emit, assumption, report));
    let conditions = conditions.iter();
    assumptions
        .chain(conditions.filter_map(|condition| self::condition(emit, condition, report)))
        .collect()
}

/// ```text
/// const _: () = assert!((if 0.0 < crate::DELTA as f64 { 1.0 } else { 0.0 }) != 0.0, "[NNZ0212]
/// `huber` needs …");
/// ```
fn condition(emit: &Emit<'_>, condition: &NumberCondition, report: &Report) -> Option<TokenStream> {
    let NumberCondition { condition, text, place } = condition;
    let holds = numbers::constant_formula(emit, condition)?;
    // An expression of Rust is a name in braces, which mean something else in an assertion.
    let text = text.replace('{', "(").replace('}', ")");
    let text = report.text(&Diagnostic::new(Code::ConstantDiffers, *place, text));
    let span = report.span(*place);
    Some(quote_spanned!(span=> const _: () = ::core::assert!(#holds != 0.0, #text);))
}

fn assumption(emit: &Emit<'_>, assumption: &Assumption, report: &Report) -> Option<TokenStream> {
    let Assumption { assumed: Assumed { extent, relation, other }, user, place } = assumption;
    let value = |dim: &Dim| match dim {
        Dim::Named(name) => emit.constant(name),
        dim => emit.fixed_extent(dim),
    };
    let (left, right) = (value(extent)?, value(other)?);
    let (holds, words) = match relation {
        Relation::Equal => (quote!(==), "to be"),
        Relation::AtLeast => (quote!(>=), "to be at least"),
    };
    let message = format!("`{user}` needs `{extent}` {words} `{other}`");
    let message = message.replace('{', "(").replace('}', ")");
    let text = report.text(&Diagnostic::new(Code::ConstantDiffers, *place, message));
    let span = report.span(*place);
    Some(quote_spanned!(span=> const _: () = ::core::assert!(#left #holds #right, #text);))
}
