//! The one place that spells the runtime's paths.

use proc_macro2::TokenStream;
use quote::quote;

/// Everything that emitted code names, in one module of the facade.
pub(crate) fn runtime() -> TokenStream {
    quote!(::nnz::__private)
}

/// The macro by which a block comes to the `graph!` that names it.
pub(crate) fn graph() -> TokenStream {
    quote!(::nnz::graph)
}
