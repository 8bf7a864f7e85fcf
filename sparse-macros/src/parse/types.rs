//! Types: storage, element type and extents.

use super::Notes;
use crate::ast::{ArrayType, Extent};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use sparse_core::diagnostics::Code;
use syn::parse::ParseStream;
use syn::{Ident, LitInt, Token, bracketed};

/// `csr<f64>[n, d]`, of what is computed or trained.
pub(super) fn array_type(stream: ParseStream<'_>, notes: &mut Notes) -> syn::Result<ArrayType> {
    let mut array = input_type(stream, notes)?;
    if let Some(second) = array.alternatives.first() {
        let message = "only an input or a label may have one of several storage types".to_owned();
        let help = format!(
            "write one, `{}` or `{second}`: a parameter has one whatever a batch has, and that of a value is inferred",
            array.storage
        );
        notes.error(Code::BadAlternatives, second.span(), message, &help);
        array.alternatives.clear();
    }
    Ok(array)
}

/// `csr<f64>[n, d]` or `csr | dense[n, d]`.
pub(super) fn input_type(stream: ParseStream<'_>, notes: &mut Notes) -> syn::Result<ArrayType> {
    let storage: Ident = stream.parse()?;
    let mut alternatives: Vec<Ident> = Vec::new();
    while stream.parse::<Option<Token![|]>>()?.is_some() {
        let next: Ident = stream.parse()?;
        if next == storage || alternatives.contains(&next) {
            let message = format!("the alternative `{next}` is given twice");
            notes.error(Code::BadAlternatives, next.span(), message, "leave one of them out");
        } else {
            alternatives.push(next);
        }
    }
    let element = if stream.parse::<Option<Token![<]>>()?.is_some() {
        let element: Ident = stream.parse()?;
        if stream.peek(Token![,]) {
            let message = format!("extents stand in square brackets: `{storage}[{element}, …]`");
            return Err(syn::Error::new(element.span(), message));
        }
        stream.parse::<Token![>]>()?;
        Some(element)
    } else {
        None
    };
    if !stream.is_empty() && !stream.peek(syn::token::Bracket) {
        let message = format!("expected the extents in square brackets: `{storage}[n, d]`");
        return Err(stream.error(message));
    }
    let content;
    bracketed!(content in stream);
    let mut dims = Vec::new();
    while !content.is_empty() {
        dims.push(extent(&content, notes)?);
        if !content.is_empty() {
            content.parse::<Token![,]>()?;
        }
    }
    let span = storage.span();
    Ok(ArrayType { storage, alternatives, element, dims, span })
}

/// One extent, up to the next comma.
fn extent(stream: ParseStream<'_>, notes: &mut Notes) -> syn::Result<Extent> {
    let mut tokens: Vec<TokenTree> = Vec::new();
    while !stream.is_empty() && !stream.peek(Token![,]) {
        match stream.parse()? {
            // What a macro was given as `$k:literal` comes in a group without parentheses.
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                tokens.extend(group.stream());
            }
            token => tokens.push(token),
        }
    }
    let known = match &tokens[..] {
        [TokenTree::Ident(word)] if word == "_" => Some(Extent::Inferred),
        [TokenTree::Ident(word)] if is_name(word) => Some(Extent::Name(word.clone())),
        [TokenTree::Literal(number)] => {
            let number = syn::parse_str::<LitInt>(&number.to_string()).ok();
            number.and_then(|number| number.base10_parse().ok()).map(Extent::Size)
        }
        _ => None,
    };
    Ok(known.unwrap_or_else(|| {
        let text: TokenStream = tokens.iter().cloned().collect();
        let span = tokens.first().map_or_else(|| stream.span(), TokenTree::span);
        let message = format!("`{text}` is no extent");
        let is_word =
            |token: &TokenTree| matches!(token, TokenTree::Ident(_) | TokenTree::Literal(_));
        let has_name = tokens.iter().any(|token| matches!(token, TokenTree::Ident(_)));
        let help = if tokens.len() > 1 && tokens.iter().all(is_word) {
            let words: Vec<String> = tokens.iter().map(TokenTree::to_string).collect();
            format!("write a comma between extents: `[{}]`", words.join(", "))
        } else if tokens.len() > 1 && has_name {
            format!("write `const NAME = {text};` in the model, of constants, and `NAME` here")
        } else {
            "write a name, a whole number below 2⁶⁴, or `_` to have it inferred".to_owned()
        };
        notes.error(Code::BadExtent, span, message, &help);
        Extent::Inferred
    }))
}

/// Whether a word may be a name: emitted names are made of it, which `r#type` is not fit for.
fn is_name(word: &Ident) -> bool {
    let text = word.to_string();
    !text.starts_with("r#") && syn::parse_str::<Ident>(&text).is_ok()
}
