//! Documentation of emitted items, for rustdoc and hovering.

use super::context::Emit;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use sparse_core::ir::ValueId;
use sparse_core::shapes::show;
use sparse_core::storage::Storage;
use syn::Attribute;

/// The user's own documentation, or a sentence in its place.
pub(super) fn documentation(attributes: &[Attribute], otherwise: &str) -> TokenStream {
    match attributes {
        [] => quote!(#[doc = #otherwise]),
        attributes => attributes.iter().map(ToTokens::to_token_stream).collect(),
    }
}

/// ```text
/// # Plan
/// (the table)
/// ```
pub(super) fn plan(emit: &Emit<'_>) -> TokenStream {
    if emit.broken {
        return TokenStream::new();
    }
    let text = format!("\n# Plan\n\n```text\n{}```", emit.plan);
    quote!(#[doc = #text])
}

/// A sentence on a value, and its line of the plan.
pub(super) fn row(emit: &Emit<'_>, id: ValueId) -> String {
    with_line(emit, id, line(emit, id))
}

/// The same of a parameter's gradient.
pub(super) fn gradient_row(emit: &Emit<'_>, parameter: ValueId, storage: Storage) -> String {
    let sentence = format!("The gradient of `{}`: `{storage}`.", emit.graph.label(parameter));
    let gradients = &emit.graph.gradients;
    match gradients.iter().find(|(known, _)| *known == parameter) {
        Some((_, gradient)) => with_line(emit, *gradient, sentence),
        None => sentence,
    }
}

fn with_line(emit: &Emit<'_>, id: ValueId, sentence: String) -> String {
    // Values are in the order of their numbers.
    match emit.plan.values.binary_search_by_key(&id.0, |value| value.number as usize) {
        Ok(position) => {
            format!("{sentence}\n\n```text\n{}```", emit.plan.line(position as u32))
        }
        Err(_) => sentence,
    }
}

/// One line on a value: `` `row_sparse[d, 1]` of `f32`, gradient `row_sparse` ``.
fn line(emit: &Emit<'_>, id: ValueId) -> String {
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
    if graph.updates.iter().any(|update| update.state == id) {
        line.push_str(", a state: training steps, `forward_carrying` and `loss_carrying` write it");
    }
    line
}
