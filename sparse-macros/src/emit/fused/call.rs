//! The call of the runtime's loop over rows of data.

use super::row::row_function;
use super::shape::{Steps, width};
use crate::emit::context::Emit;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use sparse_core::ir::ValueId;
use sparse_core::passes::{Linear, Lookup, LookupRead, RowLoop, Terms};
use sparse_core::shapes::Dim;

/// The call of the runtime's loop.
pub(super) fn call(emit: &Emit<'_>, parts: &RowLoop, steps: Steps) -> TokenStream {
    let row = row_function(emit, parts, steps);
    let row = match steps {
        Steps::One => row,
        Steps::EachRow => quote!(&mut __few, #row),
    };
    let (function, range) = match steps {
        Steps::One => (format_ident!("step"), None),
        Steps::EachRow => (format_ident!("steps"), Some(quote!(__first..__first + __count,))),
    };
    // Steps of one row each are made one after the other.
    let parallel = range.is_none().then(|| quote!(__context.parallel,));
    match &parts.terms {
        Terms::Linear(linear) => {
            call_linear(emit, linear, &parts.columns, &function, range, parallel, &row)
        }
        Terms::Lookups(lookups) => call_lookups(emit, lookups, &function, range, parallel, &row),
    }
}

/// `(0, __param_w.table_mut())`.
fn table(emit: &Emit<'_>, parameter: ValueId) -> TokenStream {
    let (index, local) = (emit.index_of(parameter), emit.parameter_local(parameter));
    quote!((#index, #local.table_mut()))
}

fn call_linear(
    emit: &Emit<'_>,
    linear: &Linear,
    columns: &Dim,
    function: &Ident,
    range: Option<TokenStream>,
    parallel: Option<TokenStream>,
    row: &TokenStream,
) -> TokenStream {
    let rt = &emit.rt;
    let input = emit.declared(linear.input);
    match &linear.interaction {
        None => {
            let (index, weight) =
                (emit.index_of(linear.weight), emit.parameter_local(linear.weight));
            let width = width(emit, columns);
            let call = |function: &Ident| {
                quote! {
                    #rt::linear::#function(
                        __batch.#input,
                        #range
                        #index,
                        #weight.table_mut(),
                        __updater,
                        #width,
                        #parallel
                        __scratch,
                        #row,
                    )
                }
            };
            let step = call(function);
            match is_specialized(emit).filter(|_| *columns == Dim::Size(1)) {
                None => step,
                Some(is_specialized) => {
                    let own = call(&format_ident!("own_{function}"));
                    quote!(if #is_specialized { #own } else { #step })
                }
            }
        }
        Some(term) => {
            let (weights, factors) = (table(emit, linear.weight), table(emit, term.factors));
            let size = width(emit, &term.size);
            quote! {
                #rt::interaction::#function(
                    __batch.#input,
                    #range
                    #weights,
                    #factors,
                    __updater,
                    #size,
                    #parallel
                    __scratch,
                    #row,
                )
            }
        }
    }
}

/// Whether the loop is to be compiled for the rule of the step, in the user's crate, if the model
/// names any. A constant: nothing is compiled for the other case.
fn is_specialized(emit: &Emit<'_>) -> Option<TokenStream> {
    let (_, rules) = emit.model.specialized()?;
    let rt = &emit.rt;
    Some(quote! {
        const {
            #rt::linear::is_specialized::<__R>(&[#(<#rules as #rt::UpdateRule>::NAME),*])
        }
    })
}

/// ```text
/// {
///     #[derive(Clone, Copy)]
///     struct __Reads;
///     impl lookups::Reads<3, 2> for __Reads {
///         fn each<__V: lookups::Visitor>(__visitor: &mut __V) {
///             __visitor.inner::<0, 0, 1>();
///             __visitor.element::<1, 2>();
///         }
///     }
///     let __rows = lookups::Rows {
///         count: __n_rows,
///         ids: |__row: usize| [Id::index(__batch.user.values()[__row]).unwrap_or(usize::MAX), …],
///     };
///     lookups::step(__Reads, __rows, [(0, __param_p.table_mut()), …], __updater,
///         linear::Fixed::<16>, __context.parallel, __scratch,
///         |__row, __s, __saved| …)
/// }
/// ```
fn call_lookups(
    emit: &Emit<'_>,
    lookups: &[Lookup],
    function: &Ident,
    range: Option<TokenStream>,
    parallel: Option<TokenStream>,
    row: &TokenStream,
) -> TokenStream {
    let rt = &emit.rt;
    let mut position = 0usize..;
    let mut next = || position.next();
    let reads: Vec<TokenStream> = lookups
        .iter()
        .enumerate()
        .map(|(number, lookup)| match &lookup.read {
            LookupRead::Element(_) => {
                let table = next();
                quote!(element::<#number, #table>)
            }
            LookupRead::Inner { .. } => {
                let (left, right) = (next(), next());
                quote!(inner::<#number, #left, #right>)
            }
        })
        .collect();
    let rows: Vec<_> = lookups.iter().flat_map(|lookup| lookup.read.rows()).collect();
    let (n_tables, n_reads) = (rows.len(), reads.len());
    let tables = rows.iter().map(|row| table(emit, row.table));
    let ids = rows.iter().map(|row| {
        let ids = emit.declared(row.ids);
        quote!(#rt::Id::index(__batch.#ids.values()[__row]).unwrap_or(#rt::usize::MAX))
    });
    let sizes = lookups.iter().find_map(|lookup| match &lookup.read {
        LookupRead::Inner { size, .. } => Some(size.clone()),
        LookupRead::Element(_) => None,
    });
    let size = width(emit, &sizes.unwrap_or(Dim::Size(1)));
    quote! {{
        #[derive(#rt::Clone, #rt::Copy)]
        struct __Reads;
        impl #rt::lookups::Reads<#n_tables, #n_reads> for __Reads {
            #[inline(always)]
            fn each<__V: #rt::lookups::Visitor>(__visitor: &mut __V) {
                #(__visitor.#reads();)*
            }
        }
        let __rows = #rt::lookups::Rows { count: __n_rows, ids: |__row: #rt::usize| [#(#ids),*] };
        #rt::lookups::#function(
            __Reads,
            __rows,
            #range
            [#(#tables),*],
            __updater,
            #size,
            #parallel
            __scratch,
            #row,
        )
    }}
}
