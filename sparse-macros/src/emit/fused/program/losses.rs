//! The losses of one sample.

use super::extents::elements;
use crate::emit::context::Emit;
use crate::emit::element_wise::formula;
use crate::emit::fused::loss::attributes;
use crate::emit::fused::names::local;
use crate::emit::literals::any_number;
use crate::emit::operands::number;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use sparse_core::ir::{Apply, ValueId};
use sparse_core::operators::{self, LossLabel};
use sparse_core::passes::{BaseLoss, LossOf, RowProgram};
use sparse_core::storage::Storage;

/// The loss of the sample, of base losses that are computed: sums of them, and products with
/// numbers.
pub(super) fn loss(emit: &Emit<'_>, program: &RowProgram) -> TokenStream {
    let graph = emit.graph;
    let base = program.losses.iter().filter_map(|loss| base(emit, loss));
    let combined = program.combined.iter().filter_map(|id| {
        let apply = graph.apply_of(*id)?;
        let operands: Vec<_> = apply.operands.iter().map(|id| value(emit, *id)).collect();
        let (name, formula) = (local(*id), formula(emit, apply, &operands)?);
        Some(quote!(let #name: __T = #formula;))
    });
    let losses: Vec<_> = graph.losses.iter().map(|id| value(emit, *id)).collect();
    let sum = match &losses[..] {
        [] => quote!(0.0),
        [first, others @ ..] => quote!(#first #(+ #others)*),
    };
    quote!(#(#base)* #(#combined)* #sum)
}

fn value(emit: &Emit<'_>, id: ValueId) -> TokenStream {
    match emit.graph.constant_of(id) {
        Some(constant) => {
            let (rt, constant) = (&emit.rt, any_number(constant));
            quote!(<__T as #rt::Float>::of(#constant))
        }
        None => number(emit, id).unwrap_or_else(|| {
            let name = local(id);
            quote!(#name)
        }),
    }
}

/// What the sample contributes to a loss. That of the table was computed with its gradient, if it
/// has one.
fn base(emit: &Emit<'_>, loss: &BaseLoss) -> Option<TokenStream> {
    let rt = &emit.rt;
    let name = local(loss.value);
    Some(match loss.of {
        LossOf::Table if loss.gradient.is_some() => return None,
        LossOf::Table => {
            let apply = emit.graph.apply_of(loss.value)?;
            let scores = apply.operands[0];
            let (of_scores, size) = (local(scores), elements(emit, &emit.graph.shape(scores)[1..]));
            let call = of_table(emit, loss.value, apply, &quote!(__derivatives));
            quote! {
                let (__derivatives, __work) = __work.split_at_mut(#size);
                __derivatives.copy_from_slice(&#of_scores[..]);
                let __columns = #size;
                let #name: __T = #call;
            }
        }
        LossOf::Mean(of) => {
            let of = local(of);
            quote!(let #name: __T = #rt::engine::row_functions::mean(&#of[..]);)
        }
        LossOf::Sum(of) => {
            let of = local(of);
            quote! {
                let #name: __T = #rt::engine::row_functions::total(&#of[..])
                    * <__T as #rt::Float>::of(__count as #rt::f64);
            }
        }
    })
}

/// The label of a loss, as a variable of the function.
pub(super) fn label(loss: ValueId) -> Ident {
    format_ident!("__label_{}", loss.0)
}

/// The weights of samples of a loss.
pub(super) fn weights(loss: ValueId) -> Ident {
    format_ident!("__weights_{}", loss.0)
}

/// The call of a loss of the table on a sample's `scores`, which become its gradient; `__columns`
/// is their number.
pub(super) fn of_table(
    emit: &Emit<'_>,
    loss: ValueId,
    apply: &Apply,
    scores: &TokenStream,
) -> TokenStream {
    let (rt, graph) = (&emit.rt, emit.graph);
    let module = format_ident!("{}", apply.operator.name);
    let label_of = apply.operands[1];
    let (label, attributes) = (label(loss), attributes(emit, apply));
    let own = if graph.storage(label_of) == Storage::Csr {
        quote!(#label)
    } else {
        quote!(#label[__row * __columns..(__row + 1) * __columns])
    };
    let call = match (graph.value(label_of).element.is_float(), apply.operator.kind) {
        // Checked when the batch came: every id is a position.
        (false, _) => quote! {
            #rt::kernels::#module::cpu::row(
                &mut #scores[..],
                #rt::Id::index(#label[__row]).unwrap_or(#rt::usize::MAX) #(, #attributes)*
            )
        },
        (true, operators::Kind::Loss { label: LossLabel::Class, .. }) => quote! {
            #rt::kernels::#module::cpu::row_of_targets(
                &mut #scores[..], ::core::iter::Iterator::copied(#own.iter()) #(, #attributes)*
            )
        },
        _ => quote! {
            #rt::kernels::#module::cpu::row(&mut #scores[..], &#own #(, #attributes)*)
        },
    };
    match apply.operands.get(2) {
        Some(_) => {
            let weights = weights(loss);
            quote!(#call * #weights[__row])
        }
        None => call,
    }
}
