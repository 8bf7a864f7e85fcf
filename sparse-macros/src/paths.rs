//! Paths of the runtime in emitted code, and paths of users.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Path;

/// Everything that emitted code names, in one module of the facade.
pub(crate) fn runtime() -> TokenStream {
    quote!(::nnz::__private)
}

/// The macro by which a block comes to the `graph!` that names it.
pub(crate) fn graph() -> TokenStream {
    quote!(::nnz::graph)
}

/// Whether a path means the same in every module and crate.
pub(crate) fn is_absolute(path: &Path) -> bool {
    let first = path.segments.first().map(|segment| segment.ident.to_string());
    path.leading_colon.is_some() || matches!(first.as_deref(), Some("crate" | "$crate"))
}
