//! Names of local variables of a row function.

use crate::emit::context::Emit;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use sparse_core::ir::ValueId;
use sparse_core::shapes::{Dim, Dims};

/// Where column `j` is in a parameter that repeats in every row.
pub(super) fn index_of(shape: &Dims, columns: &Dim) -> TokenStream {
    match shape.last() {
        Some(dim) if dim == columns => quote!(__j),
        _ => quote!(0),
    }
}

/// A value that the row function computes.
pub(super) fn local(id: ValueId) -> Ident {
    format_ident!("__v{}", id.0)
}

/// The elements of a declared array.
pub(super) fn values_of(emit: &Emit<'_>, id: ValueId) -> Ident {
    format_ident!("__values_{}", emit.graph.label(id))
}

/// The gradient of a dense parameter.
pub(super) fn grad_of(emit: &Emit<'_>, id: ValueId) -> Ident {
    format_ident!("__grad_{}", emit.graph.label(id))
}

/// The sums that a dense parameter's gradient is made of.
pub(super) fn sums_of(emit: &Emit<'_>, id: ValueId) -> Ident {
    format_ident!("__sums_{}", emit.graph.label(id))
}

/// A dense parameter as the loop holds it.
pub(super) fn dense_of(emit: &Emit<'_>, id: ValueId) -> Ident {
    format_ident!("__dense_{}", emit.graph.label(id))
}
