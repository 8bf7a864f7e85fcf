//! Types: storage, element type and extents.

use crate::ast::{ArrayType, Extent};
use syn::parse::ParseStream;
use syn::{Ident, Token, bracketed};

/// `csr<f64>[n, d]`.
pub(super) fn array_type(stream: ParseStream<'_>) -> syn::Result<ArrayType> {
    let storage: Ident = stream.parse()?;
    let element = if stream.parse::<Option<Token![<]>>()?.is_some() {
        let element = stream.parse()?;
        stream.parse::<Token![>]>()?;
        Some(element)
    } else {
        None
    };
    let content;
    bracketed!(content in stream);
    let mut dims = Vec::new();
    while !content.is_empty() {
        dims.push(if content.peek(Token![_]) {
            content.parse::<Token![_]>()?;
            Extent::Inferred
        } else if content.peek(syn::LitInt) {
            Extent::Size(content.parse::<syn::LitInt>()?.base10_parse()?)
        } else {
            Extent::Name(content.parse().map_err(|error| {
                syn::Error::new(error.span(), "expected a dimension: a name, a number or `_`")
            })?)
        });
        if !content.is_empty() {
            content.parse::<Token![,]>()?;
        }
    }
    let span = storage.span();
    Ok(ArrayType { storage, element, dims, span })
}
