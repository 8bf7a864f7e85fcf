//! Calls of kernels, one a value: what runs where nothing is fused.

use super::context::Emit;
use super::operands::{self, attribute, destination, view, written};
use super::{chains, declared};
use crate::table;
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use sparse_core::ir::{Apply, IdsExtent, ValueId};
use sparse_core::operators::Pattern;
use sparse_core::passes::kernel_name;

/// The call of each value's kernel, or of the loop that computes several, made once for the three
/// functions that have it.
pub(super) struct Calls<'a> {
    rt: &'a TokenStream,
    /// By value; nothing for what is declared, or computed on the way to another value.
    calls: Vec<TokenStream>,
}

impl<'a> Calls<'a> {
    pub(super) fn new(emit: &'a Emit<'_>) -> Self {
        let calls = emit.graph.ids().map(|id| call(emit, id).unwrap_or_default());
        Calls { rt: &emit.rt, calls: calls.collect() }
    }

    /// The calls of these values, in order. Names are brought in once: a path before each of them
    /// is most of the tokens of a call.
    ///
    /// ```text
    /// use {Cpu as __Cpu, Kernels as __Kernels, …};
    /// <__Cpu as __Kernels<f32>>::dot_csr_row_sparse(__buffer_0, __batch.x, __param_w.view(),
    ///     __context);
    /// <__Cpu as __Kernels<f32>>::add_dense_dense(&mut __outputs.pred, __buffer_0.view(),
    ///     __param_b.view(), __context);
    /// ```
    pub(super) fn of(&self, values: &[ValueId]) -> TokenStream {
        let mut tokens = self.names();
        tokens.extend(values.iter().map(|id| self.calls[id.0].clone()));
        tokens
    }

    /// The names that calls have.
    pub(super) fn names(&self) -> TokenStream {
        let rt = self.rt;
        quote! {
            #[allow(unused_imports)]
            use #rt::{
                Cpu as __Cpu, Kernels as __Kernels, check_ids as __check_ids, shape_of as __shape_of,
            };
        }
    }

    /// The call of one value's kernel, in terms of [`names`](Self::names).
    pub(super) fn one(&self, id: ValueId) -> &TokenStream {
        &self.calls[id.0]
    }
}

fn call(emit: &Emit<'_>, id: ValueId) -> Option<TokenStream> {
    let element = &emit.element;
    let apply = emit.graph.apply_of(id)?;
    let kernel = Ident::new(&kernel_name(emit.graph, id)?, Span::call_site());
    let out = written(emit, id)?;
    if let Some(chain) = emit.compiled.chains.of(id) {
        return chains::call(emit, chain, &out);
    }
    let signature = apply.operator.storage.get(apply.rule?)?.signature();
    if let Some(call) = declared::call(emit, id, apply, &signature, &out) {
        return Some(call);
    }
    let operands = apply.operands.iter().zip(&signature.operands);
    let operands = operands.map(|(operand, pattern)| match pattern {
        Pattern::Like => {
            let view = view(emit, *operand);
            quote!(__shape_of(&#view))
        }
        // A view of ids of any type.
        Pattern::Ids => {
            let view = view(emit, *operand);
            quote!(::core::convert::Into::into(#view))
        }
        _ => operands::operand(emit, *operand),
    });
    let attributes = table::kernel_attributes(apply.operator, &signature)
        .into_iter()
        .map(|(name, kind)| attribute(emit, apply, name, kind));
    let check = check_ids(emit, apply);
    Some(quote! {
        #check
        <__Cpu as __Kernels<#element>>::#kernel(#out, #(#operands,)* #(#attributes,)* __context);
    })
}

/// Ids that the model computes are checked where they are read; those of a batch were when it came.
///
/// ```text
/// __check_ids("Nearest", "best", __buffer_0.view(), __param_w.view().shape()[0])?;
/// ```
fn check_ids(emit: &Emit<'_>, apply: &Apply) -> Option<TokenStream> {
    let model = emit.name.to_string();
    let (ids, extent) = emit.graph.ids_below(apply)?;
    let (place, _) = destination(emit, ids)?;
    let name = emit.graph.label(ids);
    let bound = match extent {
        IdsExtent::Axis(of, axis) => {
            let table = view(emit, of);
            quote!(__shape_of(&#table)[#axis])
        }
        IdsExtent::Size(size) => {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            quote!(#size)
        }
        IdsExtent::Named(name) => emit.constant(name)?,
    };
    Some(quote!(__check_ids(#model, #name, #place.view(), #bound)?;))
}
