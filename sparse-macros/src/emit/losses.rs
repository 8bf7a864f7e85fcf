//! The loss of a model: the sum of its losses, or an error where it has none.

use super::context::Emit;
use super::literals::any_number;
use super::operands::operand;
use proc_macro2::TokenStream;
use quote::quote;

/// `0.0 + scalar_of(__buffer_3.view())`, once the losses are computed.
pub(super) fn sum_of_losses(emit: &Emit<'_>) -> TokenStream {
    let rt = &emit.rt;
    let losses = emit.graph.losses.iter().map(|loss| {
        let operand = operand(emit, *loss);
        match emit.graph.constant_of(*loss) {
            Some(number) => any_number(number),
            None => quote!(#rt::scalar_of(#operand)),
        }
    });
    quote!(0.0 #(+ #losses)*)
}

pub(super) fn no_loss(emit: &Emit<'_>) -> TokenStream {
    let (rt, name) = (&emit.rt, emit.name.to_string());
    quote!(#rt::Err(::core::convert::Into::into(#rt::ModelError::NoLoss { model: #name })))
}
