//! The score that the first output is a link of, for metrics: see [`linked_score`].

use super::context::Emit;
use super::operands::written;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};
use sparse_core::ir::ValueId;
use sparse_core::passes::{Destination, linked_score};

/// ```text
/// fn linked_scores(&self) -> Option<Scores<'_, f32>> {
///     Some(Scores { link: Link::Sigmoid, values: self.__workspace.0.view() })
/// }
/// ```
pub(super) fn linked_scores(emit: &Emit<'_>) -> Option<TokenStream> {
    let (rt, element) = (&emit.rt, &emit.element);
    let (link, score) = linked_score(emit.graph).filter(|_| !emit.broken)?;
    let link = format_ident!("{link:?}");
    let values = match emit.compiled.plan.destinations[score.0]? {
        Destination::Buffer(index) => {
            let index = Literal::usize_unsuffixed(index);
            quote!(self.__workspace.#index)
        }
        Destination::Output(index) => {
            let field = emit.output_ident(&emit.graph.outputs[index].name);
            quote!(self.__outputs.#field)
        }
        Destination::Gradient(_) => return None,
    };
    Some(quote! {
        fn linked_scores(&self) -> #rt::Option<#rt::Scores<'_, #element>> {
            #rt::Some(#rt::Scores { link: #rt::Link::#link, values: #values.view() })
        }
    })
}

/// An array that a fused step writes where outputs are recorded.
pub(super) struct Recorded {
    /// The value.
    pub(super) value: ValueId,
    /// Its elements in the row function.
    pub(super) variable: Ident,
    /// The array.
    pub(super) array: TokenStream,
}

/// The outputs, and the score of the first if that is in the workspace.
pub(super) fn recorded(emit: &Emit<'_>) -> Vec<Recorded> {
    let outputs = emit.graph.outputs.iter().map(|output| {
        let field = emit.output_ident(&output.name);
        let variable = format_ident!("__out_{}", output.name);
        Recorded { value: output.value, variable, array: quote!(__outputs.#field) }
    });
    let score = linked_score(emit.graph).and_then(|(_, value)| {
        let is_beside = matches!(emit.compiled.plan.destinations[value.0]?, Destination::Buffer(_));
        let variable = format_ident!("__scores");
        is_beside.then_some(Recorded { value, variable, array: written(emit, value)? })
    });
    outputs.chain(score).collect()
}
