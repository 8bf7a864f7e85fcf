//! The operators' pages as modules without items, so that they are part of the documentation of the
//! crate.

use super::ident;
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::document::module_pages;

/// ```text
/// /// # Operators …
/// pub mod operators {
///     /// # Operators: dot …
///     pub mod dot {}
/// }
/// ```
pub(crate) fn pages() -> TokenStream {
    let (index, families): (Vec<_>, Vec<_>) =
        module_pages().into_iter().partition(|(name, _)| name.is_empty());
    let index = index.into_iter().map(|(_, text)| text);
    let modules = families.into_iter().map(|(name, text)| {
        let name = ident(&name);
        quote!(
            #[doc = #text]
            pub mod #name {}
        )
    });
    quote! {
        #(#[doc = #index])*
        pub mod operators {
            #(#modules)*
        }
    }
}
