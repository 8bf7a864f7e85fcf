//! What hovering and rustdoc show.

use super::Emit;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use sparse_core::ir::ValueId;
use sparse_core::shapes::show;
use syn::Attribute;

/// The user's own documentation, or a sentence in its place.
pub(super) fn documentation(attributes: &[Attribute], otherwise: &str) -> TokenStream {
    if attributes.iter().any(|attribute| attribute.path().is_ident("doc")) {
        return attributes.iter().map(ToTokens::to_token_stream).collect();
    }
    let others = attributes.iter().map(ToTokens::to_token_stream);
    quote!(#[doc = #otherwise] #(#others)*)
}

/// ```text
/// # Plan
/// (the table)
/// ```
pub(super) fn plan(emit: &Emit<'_>) -> TokenStream {
    if emit.broken {
        return TokenStream::new();
    }
    let text = format!("\n# Plan\n\n```text\n{}```", emit.compiled.plan.text);
    quote!(#[doc = #text])
}

/// One line on a value: `` `row_sparse[d, 1]` of `f32`, gradient `row_sparse` ``.
pub(super) fn line(emit: &Emit<'_>, id: ValueId) -> String {
    let graph = emit.graph;
    let mut line = format!(
        "`{}{}` of `{}`",
        graph.storage(id),
        show(&graph.shape(id)),
        graph.value(id).element
    );
    if let Some((_, gradient)) = graph.gradients.iter().find(|(parameter, _)| *parameter == id) {
        line.push_str(&format!(", gradient `{}`", graph.storage(*gradient)));
    }
    line
}
