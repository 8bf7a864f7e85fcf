//! The step that is not one loop: kernels one after the other, but rows of parameters are read
//! where they are updated, and their gradients go straight into the update.

use super::context::Emit;
use super::declarations::trained;
use super::kernels::Calls;
use super::losses::sum_of_losses;
use super::nest::balanced;
use super::operands::{attribute, view, written};
use super::updates::{apply, settle, take_apart};
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::ir::{Apply, ValueId};
use sparse_core::passes::{NamedRows, Scatter};
use std::collections::{BTreeMap, BTreeSet};

/// For `pred = dot(embedding_bag(x, t), h); loss squared_error(pred, y); output pred`:
///
/// ```text
/// __updater.begin_step()?;
/// read_rows::bags(__buffer_0, __batch.x, read_rows::Lent { parameter: 0, …, __updater }, false,
///     true, __context)?;
/// <__Cpu as __Kernels<f32>>::dot_dense_dense(&mut __outputs.pred, __buffer_0.view(),
///     __param_h.view(), …); …
/// let __loss = 0.0 + scalar_of(__buffer_1.view());
/// scatter_gradient::update(0, __param_t.table_mut(), __updater,
///     scatter_gradient::Bags { bags: __batch.x, added: __buffer_2.view(), … },
///     __context.parallel, __scratch)?;
/// __updater.apply_dense(1, __param_h.values_mut(), __gradients.h.values())?;
/// __updater.end_step()?;
/// ```
pub(super) fn step(emit: &Emit<'_>, calls: &Calls<'_>, parameters: &[Scatter]) -> TokenStream {
    let names = calls.names();
    let (rt, graph) = (&emit.rt, emit.graph);
    let of = |id: ValueId| parameters.iter().find(|scatter| scatter.parameter == id);
    let settle = trained(emit).into_iter().map(|(id, storage)| match of(id) {
        Some(Scatter { lookups: Some(_), .. }) => None,
        _ => settle(emit, id, storage),
    });
    let trains = graph.gradients.iter().map(|(_, gradient)| *gradient);
    let needed = graph.ancestors(graph.losses.iter().copied().chain(trains));
    let skipped: BTreeSet<ValueId> =
        parameters.iter().flat_map(|scatter| &scatter.skipped).copied().collect();
    let readers = parameters.iter().flat_map(|scatter| {
        scatter.lookups.iter().flatten().map(|reader| (*reader, scatter.parameter))
    });
    // Of a value that reads two the first one counts.
    let readers: BTreeMap<ValueId, ValueId> = readers.rev().collect();
    let called =
        |id: ValueId| !skipped.contains(&id) && emit.compiled.chains.result_beyond(id).is_none();
    let calls = emit.compiled.plan.all.iter().filter(|id| called(**id)).map(|id| {
        let call = match readers.get(id) {
            Some(parameter) => lookup(emit, *id, *parameter).unwrap_or_default(),
            None => calls.one(*id).clone(),
        };
        // What the loss and the gradients do not need is computed for the outputs only.
        if needed[id.0] { call } else { quote!(if __record { #call }) }
    });
    let updates = updates(emit, parameters);
    let (take_apart, losses) = (take_apart(emit), sum_of_losses(emit));
    quote! {
        #names
        self.__check(__batch, true)?;
        #take_apart
        __updater.begin_step()?;
        let __record = __updater.records_outputs();
        #(#settle)*
        #(#calls)*
        let __loss = #losses;
        #updates
        __updater.end_step()?;
        #rt::Ok(__loss)
    }
}

/// The updates of all parameters: of some by the terms of their gradients.
pub(super) fn updates(emit: &Emit<'_>, parameters: &[Scatter]) -> TokenStream {
    let updates = trained(emit).into_iter().map(|(id, storage)| {
        match parameters.iter().find(|scatter| scatter.parameter == id) {
            Some(scatter) => update(emit, scatter),
            None => apply(emit, id, storage),
        }
    });
    quote!(#(#updates)*)
}

/// A value that reads rows of a parameter.
fn lookup(emit: &Emit<'_>, id: ValueId, parameter: ValueId) -> Option<TokenStream> {
    let rt = &emit.rt;
    let apply = emit.graph.apply_of(id)?;
    let (out, index) = (written(emit, id)?, emit.index_of(parameter)?);
    let local = emit.parameter_local(parameter);
    let lent = quote! {
        #rt::read_rows::Lent {
            parameter: #index,
            shape: *#local.shape(),
            table: #local.table_mut(),
            updater: &mut *__updater,
        }
    };
    Some(match NamedRows::read(emit.graph, apply, parameter)? {
        NamedRows::Product { csr } => {
            let csr = view(emit, csr);
            quote!(#rt::read_rows::product(#out, #csr, #lent, __context)?;)
        }
        NamedRows::Bags { bags } => {
            let (bags, [mean, weighted]) = (view(emit, bags), of_bags(emit, apply));
            quote!(#rt::read_rows::bags(#out, #bags, #lent, #mean, #weighted, __context)?;)
        }
        NamedRows::Ids { ids } => {
            let ids = view(emit, ids);
            quote!(#rt::read_rows::taken(#out, #ids, #lent, __context)?;)
        }
        // Kernels compute interactions.
        NamedRows::Pairs { .. } => return None,
    })
}

/// The update of a parameter by the terms of its gradient.
fn update(emit: &Emit<'_>, scatter: &Scatter) -> Option<TokenStream> {
    let rt = &emit.rt;
    let (index, local) =
        (emit.index_of(scatter.parameter)?, emit.parameter_local(scatter.parameter));
    let terms = scatter.terms.iter().filter_map(|id| term(emit, emit.graph.apply_of(*id)?));
    let terms: Vec<TokenStream> = terms.collect();
    let terms = balanced(&terms, |left, right| quote!(#rt::scatter_gradient::Both(#left, #right)))?;
    Some(match scatter.lookups {
        Some(_) => quote! {
            #rt::scatter_gradient::update(
                #index, #local.table_mut(), __updater, #terms, __context.parallel, __scratch,
            )?;
        },
        None => {
            quote! {
                #rt::scatter_gradient::update_values(
                    #index, #local.values_mut(), __updater, #terms, __context.parallel, __scratch,
                )?;
            }
        }
    })
}

/// `scatter_gradient::Product { csr: batch.x, added: __buffer_2.view() }`
fn term(emit: &Emit<'_>, apply: &Apply) -> Option<TokenStream> {
    let rt = &emit.rt;
    let (rows, added) = NamedRows::added(emit.graph, apply)?;
    let added = view(emit, added);
    Some(match rows {
        NamedRows::Product { csr } => {
            let csr = view(emit, csr);
            quote!(#rt::scatter_gradient::Product { csr: #csr, added: #added })
        }
        NamedRows::Bags { bags } => {
            let (bags, [mean, weighted]) = (view(emit, bags), of_bags(emit, apply));
            quote!(#rt::scatter_gradient::Bags { bags: #bags, added: #added, mean: #mean, weighted: #weighted })
        }
        NamedRows::Ids { ids } => {
            let ids = view(emit, ids);
            quote!(#rt::scatter_gradient::Taken { ids: #ids, added: #added })
        }
        NamedRows::Pairs { .. } => return None,
    })
}

/// The attributes of bags: whether they are means, and whether rows are weighted.
pub(super) fn of_bags(emit: &Emit<'_>, apply: &Apply) -> [TokenStream; 2] {
    ["mean", "weighted"].map(|name| {
        let known = apply.operator.attributes.iter().find(|attribute| attribute.name == name);
        known.map_or(TokenStream::new(), |known| attribute(emit, apply, name, known.kind))
    })
}
