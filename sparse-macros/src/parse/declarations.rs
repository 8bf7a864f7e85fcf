//! One declaration.

use super::expressions::expression;
use super::types::array_type;
use super::{Note, Notes};
use crate::ast::{Declaration, Expression, ExpressionKind, Initializer, Input, Let, Parameter};
use proc_macro2::TokenStream;
use quote::ToTokens;
use sparse_core::diagnostics::{Code, nearest};
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, Ident, Token};

/// The words that begin a declaration, for suggestions.
const DECLARATIONS: [&str; 10] =
    ["const", "input", "label", "param", "let", "loss", "output", "fallback", "dtype", "fuse"];

/// A declaration. `None` after an error that is noted.
pub(super) fn declaration(
    stream: ParseStream<'_>,
    notes: &mut Notes,
) -> syn::Result<Option<Declaration>> {
    let docs = stream.call(Attribute::parse_outer)?;
    if stream.peek(Token![let]) {
        stream.parse::<Token![let]>()?;
        return let_declaration(stream, notes).map(Some);
    }
    if stream.peek(Token![const]) {
        return constant(stream).map(Some);
    }
    let word: Ident = stream.parse().map_err(|error| {
        syn::Error::new(error.span(), "expected a declaration, such as `let name = …;`")
    })?;
    let parsed = match word.to_string().as_str() {
        "input" | "label" => {
            let name = stream.parse()?;
            stream.parse::<Token![:]>()?;
            let array = array_type(stream)?;
            Declaration::Input(Input { docs, is_label: word == "label", name, array })
        }
        "param" => parameter(stream, docs)?,
        "loss" => Declaration::Loss(expression(&stream.parse::<Expr>()?, notes)),
        "output" => {
            let name: Ident = stream.parse()?;
            let array = match stream.parse::<Option<Token![:]>>()? {
                Some(_) => Some(array_type(stream)?),
                None => None,
            };
            let value = if stream.parse::<Option<Token![=]>>()?.is_some() {
                expression(&stream.parse::<Expr>()?, notes)
            } else {
                Expression { span: name.span(), kind: ExpressionKind::Name(name.clone()) }
            };
            Declaration::Output { name, array, value }
        }
        "fallback" | "dtype" | "fuse" => {
            stream.parse::<Token![=]>()?;
            Declaration::Option { name: word, value: stream.parse()? }
        }
        other => {
            notes.errors.push(Note {
                code: Code::UnknownDeclaration,
                span: word.span(),
                message: format!("`{other}` does not begin a declaration"),
                help: Some(match nearest(other, DECLARATIONS) {
                    Some(known) => format!("write `{known}`"),
                    None => format!("declarations begin with `{}`", DECLARATIONS.join("`, `")),
                }),
            });
            // Nothing more to say about this line.
            stream.parse::<TokenStream>()?;
            return Ok(None);
        }
    };
    if !stream.is_empty() {
        return Err(stream.error("expected `;`"));
    }
    Ok(Some(parsed))
}

/// `const CLASSES;` or `const CLASSES: usize = 2 * PAIRS;`.
fn constant(stream: ParseStream<'_>) -> syn::Result<Declaration> {
    stream.parse::<Token![const]>()?;
    let name: Ident = stream.parse()?;
    if stream.parse::<Option<Token![:]>>()?.is_some() {
        let ty: Ident = stream.parse()?;
        if ty != "usize" {
            return Err(syn::Error::new(ty.span(), "extents are `usize`"));
        }
    }
    let value = match stream.parse::<Option<Token![=]>>()? {
        Some(_) => stream.parse::<Expr>()?.to_token_stream(),
        None => name.to_token_stream(),
    };
    match stream.is_empty() {
        true => Ok(Declaration::Constant { name, value }),
        false => Err(stream.error("expected `;`")),
    }
}

fn let_declaration(stream: ParseStream<'_>, notes: &mut Notes) -> syn::Result<Declaration> {
    let name = stream.parse()?;
    let array = match stream.parse::<Option<Token![:]>>()? {
        Some(_) => Some(array_type(stream)?),
        None => None,
    };
    stream.parse::<Token![=]>()?;
    let value = match stream.parse::<Expr>() {
        Ok(expr) if stream.is_empty() => expression(&expr, notes),
        // The name stays known, so that its uses are not errors too.
        result => {
            let error = result.err().unwrap_or_else(|| stream.error("expected `;`"));
            notes.errors.push(Note::syntax(&error));
            stream.parse::<TokenStream>()?;
            Expression { span: error.span(), kind: ExpressionKind::Broken }
        }
    };
    Ok(Declaration::Let(Let { name, array, value }))
}

fn parameter(stream: ParseStream<'_>, docs: Vec<Attribute>) -> syn::Result<Declaration> {
    let mut frozen = false;
    if stream.peek(syn::token::Paren) {
        let content;
        syn::parenthesized!(content in stream);
        let word: Ident = content.parse()?;
        if word != "frozen" {
            return Err(syn::Error::new(word.span(), format!("expected `frozen`, found `{word}`")));
        }
        frozen = true;
    }
    let name: Ident = stream.parse()?;
    stream.parse::<Token![:]>()?;
    let array = array_type(stream)?;
    if !stream.peek(Token![=]) {
        return Err(syn::Error::new(
            name.span(),
            format!(
                "the parameter `{name}` has no initializer: write `= Zeros` or `= Normal {{ mean: 0.0, std: 0.01 }}`"
            ),
        ));
    }
    stream.parse::<Token![=]>()?;
    let value: Expr = stream.parse()?;
    let path = match &value {
        Expr::Struct(value) => &value.path,
        Expr::Path(value) => &value.path,
        Expr::Call(call) => match &*call.func {
            Expr::Path(value) => &value.path,
            other => return Err(syn::Error::new(other.span(), "expected an initializer")),
        },
        other => {
            return Err(syn::Error::new(other.span(), "expected an initializer such as `Zeros`"));
        }
    };
    let name_of = path
        .segments
        .last()
        .map(|segment| segment.ident.clone())
        .ok_or_else(|| syn::Error::new(path.span(), "expected an initializer"))?;
    let initializer = Initializer { name: name_of, tokens: value.to_token_stream() };
    Ok(Declaration::Parameter(Parameter { docs, frozen, name, array, initializer }))
}
