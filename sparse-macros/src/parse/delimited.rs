//! Groups of tokens between delimiters.

use proc_macro2::{Delimiter, Group, Span, TokenTree};
use syn::parse::ParseStream;

/// What is between two delimiters, behind a token at `after`.
pub(super) fn group(
    stream: ParseStream<'_>,
    delimiter: Delimiter,
    after: Span,
    what: &str,
) -> syn::Result<Group> {
    if stream.is_empty() {
        return Err(syn::Error::new(after, format!("expected {what}")));
    }
    match stream.parse()? {
        TokenTree::Group(group) if group.delimiter() == delimiter => Ok(group),
        other => Err(syn::Error::new(other.span(), format!("expected {what}"))),
    }
}
