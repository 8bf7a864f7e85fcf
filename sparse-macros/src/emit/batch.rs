//! Batches: how they are taken from data, and the one check of their extents.

use super::context::Emit;
use super::declarations::{has_no_inputs, named_inputs};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use sparse_core::ir::{IdsExtent, Kind, ValueId};
use sparse_core::shapes::Dim;
use sparse_core::storage::{ElementType, Storage};
use std::collections::BTreeSet;

/// ```text
/// fn bind<'a, __S: BatchSource<'a, f32>>(&self, __source: &__S) -> Result<Self::Batch<'a>> {
///     Ok(LinearRegressionBatch { x: __source.csr(0)?, y: __source.dense(1)?, … })
/// }
/// ```
pub(super) fn bind(emit: &Emit<'_>) -> TokenStream {
    let (rt, element, batch) = (&emit.rt, &emit.element, &emit.batch);
    let fields = named_inputs(emit).enumerate().map(|(index, id)| {
        let field = emit.declared(id);
        let source = match emit.graph.storage(id) {
            Storage::Csr if emit.graph.value(id).element == ElementType::Unit => {
                quote!(__source.unit(#index)?)
            }
            Storage::Csr => quote!(__source.csr(#index)?),
            Storage::RowSparse => quote!(__source.row_sparse(#index)?),
            Storage::Dense if emit.graph.value(id).element.is_id() => {
                let (model, name) = (emit.name.to_string(), emit.graph.label(id));
                quote!(#rt::typed_ids(#model, #name, __source.ids(#index)?)?)
            }
            Storage::Dense => quote!(__source.dense(#index)?),
        };
        quote!(#field: #source)
    });
    let lifetime = has_no_inputs(emit).then(|| quote!(__lifetime: ::core::marker::PhantomData));
    quote! {
        #[inline(always)]
        fn bind<'a, __S: #rt::BatchSource<'a, #element>>(&self, __source: &__S) -> #rt::Result<#batch<'a>> {
            #rt::Ok(#batch { #(#fields,)* #lifetime })
        }
    }
}

/// ```text
/// fn input<'a>(__batch: &Self::Batch<'a>, __index: usize) -> Option<InputView<'a, f32>> {
///     match __index {
///         0 => Some(InputView::Csr(__batch.x)),
///         1 => Some(InputView::Dense(__batch.y)),
///         _ => None,
///     }
/// }
/// ```
pub(super) fn input(emit: &Emit<'_>) -> TokenStream {
    let (rt, element) = (&emit.rt, &emit.element);
    let arms = named_inputs(emit).enumerate().map(|(index, id)| {
        let field = emit.declared(id);
        let view = match emit.graph.storage(id) {
            Storage::Csr if emit.graph.value(id).element == ElementType::Unit => {
                quote!(#rt::InputView::Unit(__batch.#field))
            }
            Storage::Csr => quote!(#rt::InputView::Csr(__batch.#field)),
            Storage::RowSparse => quote!(#rt::InputView::RowSparse(__batch.#field)),
            Storage::Dense if emit.graph.value(id).element.is_id() => {
                quote!(#rt::InputView::Ids(::core::convert::Into::into(__batch.#field)))
            }
            Storage::Dense => quote!(#rt::InputView::Dense(__batch.#field)),
        };
        quote!(#index => #rt::Some(#view),)
    });
    quote! {
        #[inline]
        fn input<'a>(__batch: &Self::Batch<'a>, __index: #rt::usize) -> #rt::Option<#rt::InputView<'a, #element>> {
            match __index {
                #(#arms)*
                _ => #rt::None,
            }
        }
    }
}

/// The extents of a batch, compared once: with the model's dimensions, with numbers, and with each
/// other.
///
/// ```text
/// fn __check(&self, __batch: &LinearRegressionBatch<'_>, __labels: bool) -> Result<()> {
///     let __dim_n = __batch.x.n_rows();
///     check_features("LinearRegression", "x", "d", __batch.x.n_cols(), __extents[0])?;
///     if __labels {
///         check_label("LinearRegression", "y", __batch.y.shape().first().copied(), __dim_n)?;
///         check_rank("LinearRegression", "y", __batch.y.shape(), 2)?;
///         check_extent("LinearRegression", "y", 0, __batch.y.shape()[0], __dim_n)?; …
///     }
///     Ok(())
/// }
/// ```
pub(super) fn check(emit: &Emit<'_>) -> TokenStream {
    let (rt, batch) = (&emit.rt, &emit.batch);
    if emit.broken {
        return TokenStream::new();
    }
    // What a batch must have comes first: its dimensions are known to the labels, not the other way
    // round.
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut checks = check_values(emit, false, &mut known);
    let of_inputs = known.clone();
    let mut label_checks = check_values(emit, true, &mut known);
    for id in named_inputs(emit) {
        let is_label = matches!(emit.graph.value(id).kind, Kind::Label);
        for bound in bounds_of_ids(emit, id) {
            let Some(check) = check_ids(emit, id, &bound, &known) else { continue };
            // A dimension that only labels have is known where they are.
            let of_labels = matches!(&bound, Dim::Named(name)
                if emit.fixed_extent(&bound).is_none() && !of_inputs.contains(name));
            if is_label || of_labels { label_checks.extend(check) } else { checks.extend(check) }
        }
    }
    quote! {
        #[inline]
        fn __check(&self, __batch: &#batch<'_>, __labels: #rt::bool) -> #rt::Result<()> {
            let __extents = &self.__extents;
            #checks
            if __labels {
                #label_checks
            }
            #rt::Ok(())
        }
    }
}

/// ```text
/// fn check_batch(&self, __batch: &LinearRegressionBatch<'_>, __labels: bool) -> Result<()> {
///     self.__check(__batch, __labels)
/// }
/// ```
pub(super) fn check_of_trait(emit: &Emit<'_>) -> TokenStream {
    let (rt, batch) = (&emit.rt, &emit.batch);
    if emit.broken {
        return TokenStream::new();
    }
    quote! {
        fn check_batch(&self, __batch: &#batch<'_>, __labels: #rt::bool) -> #rt::Result<()> {
            self.__check(__batch, __labels)
        }
    }
}

/// The extents of all labels, or of all inputs.
fn check_values(emit: &Emit<'_>, labels: bool, known: &mut BTreeSet<String>) -> TokenStream {
    let kind = |id: &ValueId| matches!(emit.graph.value(*id).kind, Kind::Label) == labels;
    named_inputs(emit).filter(kind).map(|id| check_value(emit, id, known)).collect()
}

fn check_value(emit: &Emit<'_>, id: ValueId, known: &mut BTreeSet<String>) -> TokenStream {
    let rt = &emit.rt;
    let (model, name, field) = (emit.name.to_string(), emit.graph.label(id), emit.declared(id));
    let shape = emit.graph.shape(id);
    let storage = emit.graph.storage(id);
    let mut tokens = TokenStream::new();
    if matches!(emit.graph.value(id).kind, Kind::Label)
        && let Some(expected) = shape.first().and_then(|dim| known_extent(emit, dim, known))
    {
        let found = match storage {
            Storage::Csr => quote!(#rt::Some(__batch.#field.n_rows())),
            _ => quote!(__batch.#field.shape().first().copied()),
        };
        tokens.extend(quote!(#rt::check_label(#model, #name, #found, #expected)?;));
    }
    if storage != Storage::Csr {
        let rank = shape.len();
        tokens.extend(quote!(#rt::check_rank(#model, #name, __batch.#field.shape(), #rank)?;));
    }
    for (axis, dim) in shape.iter().enumerate() {
        let found = match (storage, axis) {
            (Storage::Csr, 0) => quote!(__batch.#field.n_rows()),
            (Storage::Csr, _) => quote!(__batch.#field.n_cols()),
            _ => quote!(__batch.#field.shape()[#axis]),
        };
        if let Dim::Named(dim_name) = dim
            && emit.fixed_extent(dim).is_none()
            && known.insert(dim_name.clone())
        {
            let variable = format_ident!("__dim_{dim_name}");
            tokens.extend(quote!(let #variable = #found;));
            continue;
        }
        let Some(expected) = known_extent(emit, dim, known) else { continue };
        // Of the dimensions that are given when a model is made the user is told the name.
        let given = match dim {
            Dim::Named(dim_name) => emit.fixed_index(dim_name).map(|_| dim_name.as_str()),
            _ => None,
        };
        tokens.extend(match (axis, given) {
            (0, given) if is_fixed_batch(emit, dim) => {
                let given = match given {
                    Some(given) => quote!(#rt::Some(#given)),
                    None => quote!(#rt::None),
                };
                quote!(#rt::check_batch_size(#model, #name, #given, #found, #expected)?;)
            }
            (1, Some(given)) => {
                quote!(#rt::check_features(#model, #name, #given, #found, #expected)?;)
            }
            _ => quote!(#rt::check_extent(#model, #name, #axis, #found, #expected)?;),
        });
    }
    tokens
}

/// An extent that is fixed, or that an array checked before has.
fn known_extent(emit: &Emit<'_>, dim: &Dim, known: &BTreeSet<String>) -> Option<TokenStream> {
    match dim {
        Dim::Named(name) if emit.fixed_extent(dim).is_none() => known.contains(name).then(|| {
            let variable = format_ident!("__dim_{name}");
            quote!(#variable)
        }),
        dim => emit.fixed_extent(dim),
    }
}

/// Whether an extent is that of the samples, and the same for all batches: that of the rows of the
/// first input.
fn is_fixed_batch(emit: &Emit<'_>, dim: &Dim) -> bool {
    let first = named_inputs(emit).next().map(|id| emit.graph.shape(id));
    emit.fixed_extent(dim).is_some() && first.is_some_and(|shape| shape.first() == Some(dim))
}

/// The extents that ids must stay below, as the operators which read them say.
fn bounds_of_ids(emit: &Emit<'_>, id: ValueId) -> Vec<Dim> {
    let graph = emit.graph;
    if !graph.value(id).element.is_id() {
        return Vec::new();
    }
    let mut bounds: Vec<Dim> = Vec::new();
    for user in graph.ids() {
        let below = graph.apply_of(user).and_then(|apply| graph.ids_below(apply));
        let Some((ids, extent)) = below else { continue };
        if ids == id {
            let dim = match extent {
                IdsExtent::Axis(of, place) => graph.shape(of)[place].clone(),
                IdsExtent::Size(size) => Dim::Size(size),
                IdsExtent::Named(name) => graph.unify.resolve(&Dim::Named(name.to_owned())),
            };
            bounds.extend(Some(dim).filter(|dim| !bounds.contains(dim)));
        }
    }
    bounds
}

fn check_ids(
    emit: &Emit<'_>,
    id: ValueId,
    bound: &Dim,
    known: &BTreeSet<String>,
) -> Option<TokenStream> {
    let rt = &emit.rt;
    let (model, name, field) = (emit.name.to_string(), emit.graph.label(id), emit.declared(id));
    let bound = match (emit.fixed_extent(bound), bound) {
        (Some(bound), _) => bound,
        (None, Dim::Named(dim_name)) if known.contains(dim_name) => {
            let variable = format_ident!("__dim_{dim_name}");
            quote!(#variable)
        }
        _ => return None,
    };
    Some(quote!(#rt::check_ids(#model, #name, __batch.#field, #bound)?;))
}
