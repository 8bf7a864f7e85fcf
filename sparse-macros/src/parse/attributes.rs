//! Attributes of Rust in front of what a graph declares: documentation, and nothing else.

use super::{Note, Notes};
use crate::report::Report;
use quote::ToTokens;
use sparse_core::diagnostics::Code;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{AttrStyle, Attribute, Expr, Token};

/// The documentation of a declaration. What is refused would be lost in silence otherwise.
pub(super) fn documentation(
    stream: ParseStream<'_>,
    notes: &mut Notes,
) -> syn::Result<Vec<Attribute>> {
    let (docs, others) = split(attributes(stream)?);
    notes.errors.extend(others.iter().map(refusal));
    Ok(docs)
}

/// The documentation of a model, a block or an operator.
pub(super) fn documentation_of_item(
    stream: ParseStream<'_>,
    report: &mut Report,
) -> syn::Result<Vec<Attribute>> {
    let (docs, others) = split(attributes(stream)?);
    for Note { code, span, message, help } in others.iter().map(refusal) {
        report.error(code, span, message, help);
    }
    Ok(docs)
}

/// An expression has no documentation either.
pub(super) fn of_expression(expr: &Expr, notes: &mut Notes) {
    let attributes = match expr {
        Expr::Binary(expr) => &expr.attrs,
        Expr::Call(expr) => &expr.attrs,
        Expr::Lit(expr) => &expr.attrs,
        Expr::MethodCall(expr) => &expr.attrs,
        Expr::Paren(expr) => &expr.attrs,
        Expr::Path(expr) => &expr.attrs,
        Expr::Unary(expr) => &expr.attrs,
        _ => return,
    };
    notes.errors.extend(attributes.iter().map(refusal));
}

/// All that stand here, those of what is around them (`//! …`) included, which Rust knows at its
/// beginning.
fn attributes(stream: ParseStream<'_>) -> syn::Result<Vec<Attribute>> {
    let mut all = Vec::new();
    while stream.peek(Token![#]) {
        all.extend(if stream.peek2(Token![!]) {
            stream.call(Attribute::parse_inner)?
        } else {
            stream.call(Attribute::parse_outer)?
        });
    }
    Ok(all)
}

/// Documentation of what comes next, and all others.
fn split(attributes: Vec<Attribute>) -> (Vec<Attribute>, Vec<Attribute>) {
    attributes.into_iter().partition(|attribute| {
        attribute.path().is_ident("doc") && matches!(attribute.style, AttrStyle::Outer)
    })
}

fn refusal(attribute: &Attribute) -> Note {
    let path = attribute.path().to_token_stream().to_string().replace(' ', "");
    let (why, help) = match path.as_str() {
        "doc" => (
            "`//!` documents what is around it",
            "write `/// …` before the model, the block or the declaration that it documents",
        ),
        "cfg" | "cfg_attr" => (
            "a macro does not know what is configured",
            "write `#[cfg(…)]` before a whole `graph! { … }`, one for each configuration",
        ),
        _ => (
            "only documentation, `/// …`, stands here",
            "leave it out; a lint is allowed or denied for the module around `graph!`",
        ),
    };
    let sign = if matches!(attribute.style, AttrStyle::Outer) { "#" } else { "#!" };
    let message = format!("`{sign}[{path}]` has no effect on a part of a graph: {why}");
    let (code, span) = (Code::RustAttribute, attribute.path().span());
    Note { code, span, message, help: Some(help.to_owned()) }
}
