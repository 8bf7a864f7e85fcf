//! Blocks: parameters, `let`s and a value.

use super::declarations::name;
use super::delimited::group;
use super::expressions::{self, attribute};
use super::refused::Refused;
use super::types::array_type;
use super::{Note, Notes, attributes, parse_piece};
use crate::ast::{Block, BlockParameter, Expression, ExpressionKind, Import, Statement};
use crate::paths;
use crate::report::Report;
use proc_macro2::{Delimiter, Group, Punct, Spacing, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use sparse_core::diagnostics::Code;
use syn::parse::ParseStream;
use syn::spanned::Spanned as _;
use syn::{Attribute, Expr, Ident, Token, Visibility};

/// A block behind its keyword.
pub(super) fn block(
    stream: ParseStream<'_>,
    docs: Vec<Attribute>,
    visibility: Visibility,
    imports: &mut Vec<Import>,
    report: &mut Report,
) -> syn::Result<Block> {
    let before = report.n_errors();
    let name: Ident = stream.parse()?;
    let list =
        group(stream, Delimiter::Parenthesis, name.span(), "`(` and the block's parameters")?;
    let content = group(stream, Delimiter::Brace, list.span(), "`{` and the block's value")?;
    let tokens = elsewhere(quote!(block #name #list #content));
    let is_private = matches!(visibility, Visibility::Inherited);
    let mut refused = Refused::default();
    let parameters = parse_piece(list.stream(), imports, report, |stream, notes| {
        let mut parameters = Vec::new();
        while !stream.is_empty() {
            parameters.push(parameter(stream, notes, &mut refused)?);
            if !stream.is_empty() {
                stream.parse::<Token![,]>()?;
            }
        }
        Ok(parameters)
    });
    let (pieces, result) = super::pieces(content.stream());
    let is_empty = result.is_empty();
    let mut body: Vec<Statement> = pieces
        .into_iter()
        .chain((!is_empty).then_some(result))
        .filter_map(|piece| {
            let piece = refused.replace(piece);
            parse_piece(piece, imports, report, |stream, notes| {
                let line = statement(stream, notes, &mut refused);
                if !is_private {
                    check_paths(&name, notes);
                }
                line
            })
        })
        .collect();
    let broken = report.n_errors() > before;
    if !broken {
        check_body(&name, &body, is_empty, report);
    }
    let broken = report.n_errors() > before;
    if broken {
        body.clear();
    }
    let parameters = parameters.into_iter().flatten().collect();
    Ok(Block { docs, visibility, name, parameters, body, tokens, broken })
}

/// A block that is used in other modules names constants from the root of its crate.
fn check_paths(block: &Ident, notes: &mut Notes) {
    for path in std::mem::take(&mut notes.constants) {
        if paths::is_absolute(&path) {
            continue;
        }
        let text = text_of(&path.to_token_stream()).replace(' ', "");
        let message = format!("the path `{text}` means something only in this module");
        let help = format!(
            "`{block}` may be used in others: write the path from the root, `crate::…`, or give the block the number as a parameter"
        );
        notes.error(Code::BlockBody, path.span(), message, &help);
    }
}

/// The same tokens for a macro that other crates call: `crate`, in the path of a constant, is the
/// crate that they are written in.
fn elsewhere(tokens: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut result = TokenStream::new();
    for (place, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(word) if word == "crate" && !is_called(&tokens[place + 1..]) => {
                let dollar = Punct::new('$', Spacing::Alone);
                result.extend([TokenTree::Punct(dollar), token.clone()]);
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), elsewhere(group.stream()));
                inner.set_span(group.span());
                result.extend([TokenTree::Group(inner)]);
            }
            other => result.extend([other.clone()]),
        }
    }
    result
}

/// Whether the rest of a path is that of a block, which is called.
fn is_called(rest: &[TokenTree]) -> bool {
    let is_path = |token: &&TokenTree| match token {
        TokenTree::Punct(sign) => sign.as_char() == ':',
        token => matches!(token, TokenTree::Ident(_)),
    };
    let after = rest.iter().find(|token| !is_path(token));
    matches!(after, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
}

/// A block is `let`s, each ended by `;`, and one value, which is not.
fn check_body(name: &Ident, body: &[Statement], ended: bool, report: &mut Report) {
    let (lines, value) = match body.split_last() {
        Some((value, lines)) if !ended => (lines, Some(value)),
        _ => (body, None),
    };
    let mut unused = lines.iter().filter(|line| line.binding.is_none()).peekable();
    if value.is_none_or(|value| value.binding.is_some()) && unused.peek().is_none() {
        let message = format!("the block `{name}` has no value");
        let help = match body.last().and_then(|line| line.binding.as_ref()) {
            Some((last, _)) => format!("write `{last}` as its last line, without `;`"),
            None => "write `{ dot(x, w) + b }`".to_owned(),
        };
        report.error(Code::BlockBody, name.span(), message, Some(help));
    }
    for line in unused {
        let message = format!("nothing uses `{}` in the block `{name}`", line.text);
        let help = "write `let name = …;`; the value of a block is its last line, without `;`";
        report.error(Code::BlockBody, line.value.span, message, Some(help.to_owned()));
    }
}

/// A name of a block, which is a word that is not refused as one.
fn declared(
    stream: ParseStream<'_>,
    notes: &mut Notes,
    refused: &mut Refused,
) -> syn::Result<Ident> {
    let written = stream.cursor().ident().map(|(word, _)| word);
    let declared = name(stream, notes)?;
    if let Some(written) = written {
        refused.insert(&written, &declared);
    }
    Ok(declared)
}

fn parameter(
    stream: ParseStream<'_>,
    notes: &mut Notes,
    refused: &mut Refused,
) -> syn::Result<BlockParameter> {
    let name = declared(stream, notes, refused)?;
    let default = match stream.parse::<Option<Token![=]>>()? {
        // A default is a literal, and names nothing.
        Some(_) => Some(attribute(&stream.parse::<Expr>()?, &mut Notes::default())),
        None => None,
    };
    Ok(BlockParameter { name, default })
}

fn statement(
    stream: ParseStream<'_>,
    notes: &mut Notes,
    refused: &mut Refused,
) -> syn::Result<Statement> {
    attributes::documentation(stream, notes)?;
    let binding = match stream.parse::<Option<Token![let]>>()? {
        Some(_) => {
            let name = declared(stream, notes, refused)?;
            let array = match stream.parse::<Option<Token![:]>>()? {
                Some(_) => Some(array_type(stream, notes)?),
                None => None,
            };
            stream.parse::<Token![=]>()?;
            Some((name, array))
        }
        None => None,
    };
    let fork = stream.fork();
    // `param w`: what only a model declares.
    if binding.is_none()
        && let Ok(word) = fork.parse::<Ident>()
        && fork.peek(syn::Ident)
    {
        let message = format!("a block does not declare `{word}`: it is `let`s and a value");
        let help = "models declare; a block is given the values that it needs".to_owned();
        let (code, span) = (Code::BlockBody, word.span());
        notes.errors.push(Note { code, span, message, help: Some(help) });
        stream.parse::<TokenStream>()?;
        let value = Expression { span, kind: ExpressionKind::Broken };
        return Ok(Statement { binding, value, text: String::new() });
    }
    let written = notes.cut.restored(stream.fork().parse()?);
    let value = expressions::next(stream, notes)?;
    let text = match &binding {
        Some((name, _)) => format!("let {name} = {}", text_of(&written)),
        None => text_of(&written),
    };
    if stream.is_empty() {
        Ok(Statement { binding, value, text })
    } else {
        Err(stream.error("expected `;`"))
    }
}

/// Tokens as the compiler writes them, on one line.
fn text_of(tokens: &TokenStream) -> String {
    tokens.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
