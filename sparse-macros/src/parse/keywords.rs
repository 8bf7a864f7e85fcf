//! Keywords of Rust that are operators elsewhere: `where(condition, x, y)` is told what to write
//! here.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use sparse_core::foreign_names::instead_of;

/// The tokens of one group with a keyword that is called like a function made a raw identifier,
/// which `syn` parses.
pub(super) fn callable(tokens: TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut made = Vec::new();
    while let Some(token) = tokens.next() {
        made.push(match (token, tokens.peek()) {
            (TokenTree::Ident(word), Some(TokenTree::Group(group)))
                if group.delimiter() == Delimiter::Parenthesis && is_foreign_keyword(&word) =>
            {
                TokenTree::Ident(Ident::new_raw(&word.to_string(), word.span()))
            }
            (token, _) => token,
        });
    }
    made.into_iter().collect()
}

fn is_foreign_keyword(word: &Ident) -> bool {
    let is_keyword = || syn::parse2::<syn::Ident>(TokenTree::Ident(word.clone()).into()).is_err();
    instead_of(&word.to_string()).is_some() && is_keyword()
}
