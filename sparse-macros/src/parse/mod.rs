//! Tokens to tree. Tolerant: a declaration that does not parse loses only itself.

mod declarations;
mod expressions;
mod types;

use crate::ast::{Declaration, ExpressionKind, Model};
use crate::report::Report;
use proc_macro2::{Group, Span, TokenStream, TokenTree};
use sparse_core::diagnostics::Code;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Ident, Visibility};

/// Parses all models of a `graph!`.
pub(crate) fn models(input: TokenStream, report: &mut Report) -> Vec<Model> {
    let parser = |stream: ParseStream<'_>| {
        let mut models = Vec::new();
        while !stream.is_empty() {
            match model_head(stream) {
                Ok((docs, visibility, name, body)) => {
                    let before = report.n_errors();
                    let (declarations, lost) = declarations(body.stream(), report);
                    let broken = report.n_errors() > before;
                    models.push(Model { docs, visibility, name, declarations, lost, broken });
                }
                Err(error) => {
                    report.syntax(&error);
                    // To the end of what may have been a model.
                    while !stream.is_empty() {
                        if let TokenTree::Group(_) = stream.parse::<TokenTree>()? {
                            break;
                        }
                    }
                }
            }
        }
        Ok(models)
    };
    parser.parse2(input).unwrap_or_default()
}

type Head = (Vec<Attribute>, Visibility, Ident, Group);

fn model_head(stream: ParseStream<'_>) -> syn::Result<Head> {
    let docs = stream.call(Attribute::parse_outer)?;
    let visibility: Visibility = stream.parse()?;
    let word: Ident =
        stream.parse().map_err(|error| syn::Error::new(error.span(), "expected `model`"))?;
    if word != "model" {
        return Err(syn::Error::new(word.span(), format!("expected `model`, found `{word}`")));
    }
    let name = stream.parse()?;
    let body: TokenTree = stream.parse()?;
    match body {
        TokenTree::Group(group) => Ok((docs, visibility, name, group)),
        other => Err(syn::Error::new(other.span(), "expected `{` and the model's declarations")),
    }
}

/// Splits at semicolons and parses each piece. Gives also the names of pieces that do not parse.
fn declarations(tokens: TokenStream, report: &mut Report) -> (Vec<Declaration>, Vec<Ident>) {
    let (mut declarations, mut lost) = (Vec::new(), Vec::new());
    let mut piece = TokenStream::new();
    let mut pieces = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ';' => {
                pieces.push(std::mem::take(&mut piece));
            }
            other => piece.extend([other]),
        }
    }
    let unfinished = (!piece.is_empty()).then(|| piece.clone());
    pieces.extend((!piece.is_empty()).then_some(piece));
    for piece in pieces {
        let end = piece.clone().into_iter().last().map(|token| token.span());
        let name = declared_name(&piece);
        let mut notes = Vec::new();
        match (|stream: ParseStream<'_>| declarations::declaration(stream, &mut notes))
            .parse2(piece)
        {
            Ok(Some(declaration)) => declarations.push(declaration),
            Ok(None) => lost.extend(name),
            Err(error) => {
                lost.extend(name);
                notes.extend(error.into_iter().map(|part| Note::syntax(&part)));
            }
        }
        for Note { code, span, message, help } in notes {
            // An error at the end of a declaration has no token of its own: point at the last one.
            let (span, message) = match (message.strip_prefix(AT_END), end) {
                (Some(rest), Some(end)) => (end, format!("the declaration ends too early{rest}")),
                _ => (span, message),
            };
            report.error(code, span, message, help);
        }
    }
    if let Some(last) = unfinished.and_then(|piece| piece.into_iter().last()) {
        report.error(
            Code::Syntax,
            last.span(),
            "the last declaration does not end".into(),
            Some("add `;` after it".into()),
        );
    }
    (declarations, lost)
}

/// What a declaration would have declared: the second word, as in `input x`.
fn declared_name(piece: &TokenStream) -> Option<Ident> {
    let words = piece.clone().into_iter().filter_map(|token| match token {
        TokenTree::Ident(word) => Some(word),
        _ => None,
    });
    words.take(2).nth(1)
}

/// How `syn` begins an error at the end of its input.
const AT_END: &str = "unexpected end of input";

/// An error that does not stop the parse of its declaration.
struct Note {
    code: Code,
    span: Span,
    message: String,
    help: Option<String>,
}

impl Note {
    fn syntax(error: &syn::Error) -> Note {
        Note { code: Code::Syntax, span: error.span(), message: error.to_string(), help: None }
    }
}

fn broken(notes: &mut Vec<Note>, span: Span, message: &str) -> ExpressionKind {
    notes.push(Note { code: Code::Syntax, span, message: message.into(), help: None });
    ExpressionKind::Broken
}
