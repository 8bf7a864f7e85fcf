//! Tokens to tree. Tolerant: a declaration that does not parse loses only itself.

mod attributes;
mod blocks;
mod declarations;
mod delimited;
mod depth;
mod expressions;
mod initializers;
mod items;
mod keywords;
mod operators;
mod refused;
mod run_on;
mod slices;
mod types;

use crate::arithmetic::Arithmetic;
use crate::ast::{Declaration, ExpressionKind, Import, Source};
use crate::report::Report;
pub(crate) use depth::DEEPEST;
use depth::{Cut, TooLarge};
pub(crate) use expressions::{NO_CAST, NO_LIST};
use proc_macro2::{Span, TokenStream, TokenTree};
use refused::Refused;
use sparse_core::diagnostics::Code;
use syn::parse::{ParseStream, Parser};
use syn::{Ident, Path, Token};

/// Every word that the parser knows, for the page of the language.
#[cfg(test)]
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    let kinds = declarations::KINDS.iter().map(|(word, ..)| *word);
    let items = items::ITEMS.into_iter().chain(declarations::DECLARATIONS).chain(operators::LINES);
    items.chain(kinds).chain(initializers::words()).chain(crate::resolve::values_of_options())
}

/// Parses everything in a `graph!`, unless it is nested so deep that nothing may follow it.
pub(crate) fn source_of_depth(input: TokenStream, report: &mut Report) -> Option<Source> {
    let (span, message, help) = match depth::check(input.clone()) {
        Ok(()) => return Some(source(input, report)),
        Err(TooLarge::Deep(span)) => {
            (span, too_deep("this"), "write a part of it as a `let`, and use its name")
        }
        Err(TooLarge::Long(span)) => (
            span,
            format!("an expression has more than {} signs", depth::MOST_TERMS),
            "write parts of it as `let`s, and use their names",
        ),
    };
    report.error(Code::TooDeep, span, message, Some(help.to_owned()));
    None
}

/// What is said of something that is nested deeper than [`DEEPEST`].
pub(crate) fn too_deep(what: &str) -> String {
    format!("{what} is nested more than {DEEPEST} levels deep")
}

/// Parses everything in a `graph!`.
fn source(input: TokenStream, report: &mut Report) -> Source {
    let parser = |stream: ParseStream<'_>| {
        let mut source = Source::default();
        while !stream.is_empty() {
            // It ends nothing, as in Rust.
            if stream.parse::<Option<Token![;]>>()?.is_some() {
                continue;
            }
            if let Err(error) = items::item(stream, &mut source, report) {
                report.syntax(&error);
                items::skip(stream)?;
            }
        }
        Ok(source)
    };
    parser.parse2(input).unwrap_or_default()
}

/// Splits at semicolons, and gives the rest behind the last one.
fn pieces(tokens: TokenStream) -> (Vec<TokenStream>, TokenStream) {
    let mut pieces = Vec::new();
    let mut piece = TokenStream::new();
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ';' => {
                pieces.push(std::mem::take(&mut piece));
            }
            other => piece.extend([other]),
        }
    }
    (pieces, piece)
}

/// Splits at semicolons and parses each piece. Gives also the names of pieces that do not parse.
fn declarations(
    tokens: TokenStream,
    imports: &mut Vec<Import>,
    report: &mut Report,
) -> (Vec<Declaration>, Vec<Ident>) {
    let (mut declarations, mut lost) = (Vec::new(), Vec::new());
    let (mut pieces, piece) = pieces(tokens);
    let piece = run_on::without_items(piece, &mut lost, report);
    let unfinished = (!piece.is_empty()).then(|| piece.clone());
    pieces.extend((!piece.is_empty()).then_some(piece));
    // A second `;` ends nothing.
    let pieces: Vec<TokenStream> = pieces
        .into_iter()
        .flat_map(|piece| {
            let piece = run_on::without_items(piece, &mut lost, report);
            run_on::split(piece, report)
        })
        .filter(|piece| !piece.is_empty())
        .collect();
    let mut refused = Refused::default();
    for piece in pieces {
        let (names, before) = (declared_names(&piece), report.n_errors());
        let piece = refused.replace(piece);
        let declaration = parse_piece(piece, imports, report, declarations::declaration).flatten();
        if report.n_errors() > before {
            // A name that cannot be one stands for what is declared instead.
            let known = declaration.as_ref().and_then(Declaration::name);
            if let ([written, ..], Some(declared)) = (&names[..], known) {
                refused.insert(written, declared);
            }
            lost.extend(names.into_iter().filter(|name| known != Some(name)));
        }
        declarations.extend(declaration);
    }
    if let Some(last) = unfinished.and_then(|piece| piece.into_iter().last()) {
        report.error(
            Code::MissingSemicolon,
            last.span(),
            "the last declaration does not end".into(),
            Some("add `;` after it".into()),
        );
    }
    (declarations, lost)
}

/// Parses one piece with a parser that notes what it finds. `None` after an error that stopped it.
fn parse_piece<T>(
    piece: TokenStream,
    imports: &mut Vec<Import>,
    report: &mut Report,
    parser: impl FnOnce(ParseStream<'_>, &mut Notes) -> syn::Result<T>,
) -> Option<T> {
    let end = piece.clone().into_iter().last().map(|token| token.span());
    let mut notes = Notes::default();
    let written = piece.clone();
    let piece = notes.cut.cut(piece);
    let parsed = (|stream: ParseStream<'_>| parser(stream, &mut notes)).parse2(piece);
    if let Err(error) = &parsed {
        notes.errors.extend(error.clone().into_iter().map(|part| Note::syntax(&part)));
    }
    let is_syntax = |note: &Note| matches!(note.code, Code::Syntax | Code::UnsupportedExpression);
    if notes.errors.iter().any(is_syntax)
        && let Some((span, help)) = slices::first(&written)
    {
        // What else there is to say of it follows from that.
        let (code, message) = (Code::UnsupportedExpression, slices::NO_PART.to_owned());
        notes.errors = vec![Note { code, span, message, help: Some(help) }];
    }
    imports.extend(notes.imports);
    for Note { code, span, message, help } in notes.errors {
        // An error at the end of a declaration has no token of its own: point at the last one.
        let (span, message) = match (message.strip_prefix(AT_END), end) {
            (Some(rest), Some(end)) => (end, format!("the declaration ends too early{rest}")),
            _ => (span, message),
        };
        report.error(code, span, message, help);
    }
    parsed.ok()
}

/// What a declaration would have declared: the second word, as in `input x`, or what is written in
/// the place of it.
fn declared_names(piece: &TokenStream) -> Vec<Ident> {
    let mut tokens = piece.clone().into_iter();
    let words = |token| word_of(token).filter(|word| *word != "pub");
    let Some(keyword) = tokens.find_map(words) else { return Vec::new() };
    if ["loss", "fallback", "dtype", "fuse", "specialize", "update"]
        .iter()
        .any(|known| keyword == known)
    {
        return Vec::new();
    }
    let mut tokens = tokens.peekable();
    match tokens.peek() {
        // `y = …`, without `let`.
        Some(TokenTree::Punct(_)) => vec![keyword],
        // `let (a, b) = …`
        Some(TokenTree::Group(group)) if keyword == "let" => {
            group.stream().into_iter().filter_map(word_of).collect()
        }
        _ => {
            let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ':');
            let words = tokens.clone().filter_map(word_of).filter(|word| *word != "mut");
            // Without a type, the name may be anywhere: `input csr[n, d] x`.
            let count =
                if keyword == "let" || tokens.any(|token| is_colon(&token)) { 1 } else { 2 };
            words.take(count).collect()
        }
    }
}

fn word_of(token: TokenTree) -> Option<Ident> {
    match token {
        TokenTree::Ident(word) => Some(word),
        _ => None,
    }
}

/// How `syn` begins an error at the end of its input.
const AT_END: &str = "unexpected end of input";

/// What the parser of a piece finds on its way.
#[derive(Default)]
struct Notes {
    /// Errors that do not stop it.
    errors: Vec<Note>,
    /// Paths that are called.
    imports: Vec<Import>,
    /// Paths of constants.
    constants: Vec<Path>,
    /// What is nested too deep to be parsed with what is around it.
    cut: Cut,
}

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

impl Notes {
    /// Keeps the paths in arithmetic.
    fn keep_paths(&mut self, arithmetic: &Arithmetic) {
        self.constants.extend(arithmetic.paths().into_iter().cloned());
    }

    fn error(&mut self, code: Code, span: Span, message: String, help: &str) {
        self.errors.push(Note { code, span, message, help: Some(help.to_owned()) });
    }
}

fn broken(notes: &mut Notes, span: Span, message: &str) -> ExpressionKind {
    let (code, message) = (Code::UnsupportedExpression, message.to_owned());
    notes.errors.push(Note { code, span, message, help: None });
    ExpressionKind::Broken
}
