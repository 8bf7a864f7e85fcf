//! What the model needs constants of Rust to be. Only the Rust compiler sees their values.

use super::Emit;
use crate::report::Report;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use sparse_core::diagnostics::{Code, Diagnostic};
use sparse_core::ir::Assumption;
use sparse_core::shapes::{Assumed, Dim, Relation};

/// At the user's token:
///
/// ```text
/// const _: () = assert!({ const __EXTENT: usize = CLASSES; __EXTENT } == 12, "[NNZ0212] `add` needs …");
/// ```
pub(super) fn assumptions(
    emit: &Emit<'_>,
    assumptions: &[&Assumption],
    report: &Report,
) -> TokenStream {
    let assumptions = assumptions.iter();
    assumptions.filter_map(|assumption| self::assumption(emit, assumption, report)).collect()
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
    let text = report.text(&Diagnostic::new(Code::ConstantDiffers, *place, message));
    let span = report.span(*place);
    Some(quote_spanned!(span=> const _: () = ::core::assert!(#left #holds #right, #text);))
}
