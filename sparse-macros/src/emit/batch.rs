//! Batches: how they are taken from data, and the one check of their extents.

use super::Emit;
use super::structs::named_inputs;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use sparse_core::ir::{Kind, ValueId};
use sparse_core::shapes::{Dim, place_of};
use sparse_core::storage::Storage;
use std::collections::BTreeSet;

/// ```text
/// fn bind<'a, S: BatchSource<'a, f32>>(&self, source: &S) -> Result<Self::Batch<'a>> {
///     Ok(LinearRegressionBatch { x: source.csr(0)?, y: source.dense(1)?, … })
/// }
/// ```
pub(super) fn bind(emit: &Emit<'_>) -> TokenStream {
    let (rt, element, batch) = (&emit.rt, &emit.element, &emit.batch);
    let fields = named_inputs(emit).enumerate().map(|(index, id)| {
        let field = emit.declared(id);
        let source = match emit.graph.storage(id) {
            Storage::Csr => quote!(source.csr(#index)?),
            Storage::RowSparse => quote!(source.row_sparse(#index)?),
            Storage::Dense if !emit.graph.value(id).element.is_float() => {
                quote!(source.ids(#index)?)
            }
            Storage::Dense => quote!(source.dense(#index)?),
        };
        quote!(#field: #source)
    });
    quote! {
        #[inline]
        fn bind<'a, S: #rt::BatchSource<'a, #element>>(&self, source: &S) -> #rt::Result<#batch<'a>> {
            Ok(#batch { #(#fields,)* __lifetime: ::core::marker::PhantomData })
        }
    }
}

/// The extents of a batch, compared once: with the model's dimensions, with numbers, and with each other.
///
/// ```text
/// fn __check(&self, batch: &LinearRegressionBatch<'_>, labels: bool) -> Result<()> {
///     let dim_n = batch.x.n_rows();
///     check_extent("LinearRegression", "x", 1, batch.x.n_cols(), __extents[0])?;
///     if labels {
///         check_rank("LinearRegression", "y", batch.y.shape(), 2)?;
///         check_extent("LinearRegression", "y", 0, batch.y.shape()[0], dim_n)?; …
///     }
///     Ok(())
/// }
/// ```
pub(super) fn check(emit: &Emit<'_>) -> TokenStream {
    let (rt, batch) = (&emit.rt, &emit.batch);
    if emit.broken {
        return TokenStream::new();
    }
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut checks = TokenStream::new();
    let mut label_checks = TokenStream::new();
    for id in named_inputs(emit) {
        let is_label = matches!(emit.graph.value(id).kind, Kind::Label);
        let mut names = known.clone();
        let code = check_value(emit, id, &mut names);
        if is_label {
            // A dimension that only labels have is not known outside of this block; it is compared there
            // with the labels that follow.
            label_checks.extend(code);
            known.extend(names);
        } else {
            checks.extend(code);
            known = names;
        }
    }
    quote! {
        #[inline]
        fn __check(&self, batch: &#batch<'_>, labels: bool) -> #rt::Result<()> {
            let __extents = &self.__extents;
            #checks
            if labels {
                #label_checks
            }
            Ok(())
        }
    }
}

fn check_value(emit: &Emit<'_>, id: ValueId, known: &mut BTreeSet<String>) -> TokenStream {
    let rt = &emit.rt;
    let (model, name, field) = (emit.name.to_string(), emit.graph.label(id), emit.declared(id));
    let shape = emit.graph.shape(id);
    let storage = emit.graph.storage(id);
    let mut tokens = TokenStream::new();
    if storage != Storage::Csr {
        let rank = shape.len();
        tokens.extend(quote!(#rt::check_rank(#model, #name, batch.#field.shape(), #rank)?;));
    }
    for (axis, dim) in shape.iter().enumerate() {
        let found = match (storage, axis) {
            (Storage::Csr, 0) => quote!(batch.#field.n_rows()),
            (Storage::Csr, _) => quote!(batch.#field.n_cols()),
            _ => quote!(batch.#field.shape()[#axis]),
        };
        let expected = match (emit.fixed_extent(dim), dim) {
            (Some(expected), _) => expected,
            (None, Dim::Named(dim_name)) => {
                let variable = format_ident!("dim_{dim_name}");
                if known.insert(dim_name.clone()) {
                    tokens.extend(quote!(let #variable = #found;));
                    continue;
                }
                quote!(#variable)
            }
            _ => continue,
        };
        tokens.extend(quote!(#rt::check_extent(#model, #name, #axis, #found, #expected)?;));
    }
    tokens.extend(check_ids(emit, id));
    tokens
}

/// Ids must be below the extent that the operators which read them say.
fn check_ids(emit: &Emit<'_>, id: ValueId) -> TokenStream {
    let (rt, graph) = (&emit.rt, emit.graph);
    let (model, name, field) = (emit.name.to_string(), graph.label(id), emit.declared(id));
    let mut bounds: Vec<Dim> = Vec::new();
    // What an operator reads as ids or as numbers has no bound where it is numbers.
    if graph.value(id).element.is_float() {
        return TokenStream::new();
    }
    for user in graph.ids() {
        let Some(apply) = graph.apply_of(user) else { continue };
        let Some(below) = apply.operator.ids_below else { continue };
        let operand = |name| apply.operands.get(apply.operator.operand_index(name)?).copied();
        if operand(below.ids) != Some(id) {
            continue;
        }
        let shape = operand(below.of).map(|of| graph.shape(of)).unwrap_or_default();
        let axis =
            apply.operator.number(&apply.attributes, "axis").map_or(below.axis, |axis| axis as i64);
        let dim = place_of(axis, shape.len()).map(|place| shape[place].clone());
        bounds.extend(dim.filter(|dim| !bounds.contains(dim)));
    }
    let checks = bounds
        .iter()
        .filter_map(|dim| emit.fixed_extent(dim))
        .map(|bound| quote!(#rt::check_ids(#model, #name, batch.#field, #bound)?;));
    checks.collect()
}
