//! Calls of loops over elements: several element-wise operators, and nothing between them.

use super::context::Emit;
use super::element_wise::formula;
use super::operands::{number, view};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use sparse_core::ir::ValueId;
use sparse_core::passes::{Chain, Reach};
use sparse_core::storage::Storage;
use std::collections::BTreeMap;

/// The loop that writes a chain's result to `out`. For `h = tanh(s * scale + a)`, where `a` has an
/// element for each column and `scale` is one number:
///
/// ```text
/// {
///     use {Float as _, ScalarFunctions as _};
///     type __T = f32;
///     let __r1 = __param_a.view().values();
///     let __r2 = __param_scale.view().values()[0];
///     kernels::chain::dense_rows(__buffer_1, __buffer_0.view(), __context, |__at: usize,
///         __r0: &[__T], __out: &mut [__T]| {
///         let __r0 = &__r0[..__out.len()];
///         let __r1 = &__r1[..__out.len()];
///         for __i in 0..__out.len() {
///             let __v5: __T = (__r0[__i] * __r2);
///             let __v6: __T = (__v5 + __r1[__i]);
///             let __v7: __T = (__v6).tanh();
///             __out[__i] = __v7;
///         }
///     });
/// }
/// ```
pub(super) fn call(emit: &Emit<'_>, chain: &Chain, out: &TokenStream) -> Option<TokenStream> {
    let (rt, element) = (&emit.rt, &emit.element);
    let (result, first) = (*chain.values.last()?, view(emit, chain.reads.first()?.value));
    let by_rows = chain.is_by_rows();
    let function = format_ident!(
        "{}",
        match (emit.graph.storage(result), by_rows) {
            (Storage::Dense, false) => "dense",
            (Storage::Dense, true) => "dense_rows",
            (Storage::Csr, _) => "csr",
            (Storage::RowSparse, _) => "row_sparse",
        }
    );
    // What the loop is given comes first, and is not borrowed before.
    let others = || chain.reads.iter().enumerate().skip(1);
    let borrow = others().map(|(place, read)| {
        let (name, view) = (read_as(place), view(emit, read.value));
        match read.reach {
            Reach::One => quote!(let #name = #view.values()[0];),
            _ => quote!(let #name = #view.values();),
        }
    });
    let at_run = others().map(|(place, read)| {
        let name = read_as(place);
        match (read.reach, by_rows) {
            (Reach::Element, false) => quote!(let #name = &#name[__at..][..__out.len()];),
            (Reach::Element, true) => {
                quote!(let #name = &#name[__at * __out.len()..][..__out.len()];)
            }
            (Reach::Column, _) => quote!(let #name = &#name[..__out.len()];),
            (Reach::Row, _) => quote!(let #name = #name[__at];),
            (Reach::One, _) => TokenStream::new(),
        }
    });
    let reads: BTreeMap<ValueId, (usize, Reach)> = chain
        .reads
        .iter()
        .enumerate()
        .map(|(place, read)| (read.value, (place, read.reach)))
        .collect();
    let steps = chain.values.iter().map(|id| {
        let apply = emit.graph.apply_of(*id)?;
        let operands = apply.operands.iter().map(|operand| element_of(emit, &reads, *operand));
        let operands: Vec<TokenStream> = operands.collect();
        let (name, value) = (local(*id), formula(emit, apply, &operands)?);
        Some(quote!(let #name: __T = #value;))
    });
    let steps = steps.collect::<Option<TokenStream>>()?;
    let (first_name, result) = (read_as(0), local(result));
    Some(quote! {
        {
            #[allow(unused_imports)]
            use #rt::{Float as _, ScalarFunctions as _};
            type __T = #element;
            #(#borrow)*
            #rt::kernels::chain::#function(
                #out,
                #first,
                __context,
                #[inline(always)]
                |__at: #rt::usize, #first_name: &[__T], __out: &mut [__T]| {
                    let #first_name = &#first_name[..__out.len()];
                    #(#at_run)*
                    for __i in 0..__out.len() {
                        #steps
                        __out[__i] = #result;
                    }
                },
            );
        }
    })
}

/// An operand at the place of the loop.
fn element_of(
    emit: &Emit<'_>,
    reads: &BTreeMap<ValueId, (usize, Reach)>,
    id: ValueId,
) -> TokenStream {
    if let Some(number) = number(emit, id) {
        return number;
    }
    match reads.get(&id).map(|(place, reach)| (read_as(*place), reach)) {
        Some((name, Reach::Element | Reach::Column)) => quote!(#name[__i]),
        Some((name, _)) => quote!(#name),
        None => {
            let name = local(id);
            quote!(#name)
        }
    }
}

fn local(id: ValueId) -> Ident {
    format_ident!("__v{}", id.0)
}

fn read_as(place: usize) -> Ident {
    format_ident!("__r{place}")
}
