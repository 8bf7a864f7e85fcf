//! The loss of one row, by the kernel of the loss.

use crate::emit::context::Emit;
use crate::emit::operands;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use sparse_core::ir::Apply;
use sparse_core::operators::{self, LossLabel};

/// The attributes of a loss, in the order of its row.
pub(super) fn attributes(emit: &Emit<'_>, loss: &Apply) -> Vec<TokenStream> {
    let attributes = loss.operator.attributes.iter();
    attributes
        .map(|attribute| operands::attribute(emit, loss, attribute.name, attribute.kind))
        .collect()
}

/// `squared_error::cpu::row(&mut s[..columns], &label[…])`: the loss of a row, whose `scores`
/// become its gradient.
pub(super) fn row_loss(emit: &Emit<'_>, loss: &Apply, scores: &TokenStream) -> TokenStream {
    let rt = &emit.rt;
    let module = format_ident!("{}", loss.operator.name);
    let label = loss.operands.get(1).map(|label| emit.graph.value(*label).element);
    let is_float = label.is_some_and(|element| element.is_float());
    let attributes = attributes(emit, loss);
    match (is_float, loss.operator.kind) {
        // Checked when the batch came: every id is a position.
        (false, _) => quote! {
            #rt::kernels::#module::cpu::row(
                &mut #scores, #rt::Id::index(__label[__row]).unwrap_or(#rt::usize::MAX) #(, #attributes)*)
        },
        (true, operators::Kind::Loss { label: LossLabel::Class, .. }) => quote! {
            #rt::kernels::#module::cpu::row_of_targets(
                &mut #scores, ::core::iter::Iterator::copied(
                    __label[__row * __columns..(__row + 1) * __columns].iter(),
                ) #(, #attributes)*)
        },
        _ => quote! {
            #rt::kernels::#module::cpu::row(
                &mut #scores, &__label[__row * __columns..(__row + 1) * __columns] #(, #attributes)*)
        },
    }
}
