//! Declarations that run into the next one, because a `;` is missing.

use super::declarations::DECLARATIONS;
use crate::report::Report;
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use sparse_core::diagnostics::Code;

/// What follows the items that stand in front, which belong beside a model and not in it. What they
/// declare is lost.
pub(super) fn without_items(
    piece: TokenStream,
    lost: &mut Vec<Ident>,
    report: &mut Report,
) -> TokenStream {
    let mut tokens: Vec<TokenTree> = piece.into_iter().collect();
    while let [TokenTree::Ident(word), TokenTree::Ident(name), ..] = &tokens[..] {
        let beside = "declare it beside the model, in the same `graph!`";
        let (what, help) = match word.to_string().as_str() {
            "block" => ("a block", beside),
            "operator" => ("an operator", beside),
            "model" => ("a model", beside),
            "for" | "while" => (
                "a loop",
                "write each round out, `let h1 = step(h0); let h2 = step(h1);`, with what repeats as a `block` beside the model",
            ),
            _ => break,
        };
        let is_body = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        let Some(body) = tokens.iter().position(is_body) else { break };
        let message = format!("{what} does not stand in a model");
        report.error(Code::UnknownDeclaration, word.span(), message, Some(help.to_owned()));
        lost.push(name.clone());
        tokens.drain(..=body);
    }
    tokens.into_iter().collect()
}

/// Splits what stands between two semicolons where a word that begins a declaration follows the end
/// of another one.
pub(super) fn split(piece: TokenStream, report: &mut Report) -> Vec<TokenStream> {
    let tokens: Vec<TokenTree> = piece.into_iter().collect();
    let begins: Vec<usize> = (2..tokens.len()).filter(|at| begins(&tokens, *at)).collect();
    for at in &begins {
        let message = format!("`;` is missing before `{}`", tokens[*at]);
        let help = Some("end the declaration with `;`".to_owned());
        report.error(Code::MissingSemicolon, tokens[at - 1].span(), message, help);
    }
    let ends = begins.iter().copied().chain([tokens.len()]);
    let starts = std::iter::once(0).chain(begins.iter().copied());
    let parts = starts.zip(ends).map(|(start, end)| tokens[start..end].iter().cloned().collect());
    parts.collect()
}

/// Whether a declaration begins here: two names follow each other in no expression and in no type.
fn begins(tokens: &[TokenTree], at: usize) -> bool {
    let TokenTree::Ident(word) = &tokens[at] else { return false };
    let ends_before = match &tokens[at - 1] {
        TokenTree::Punct(_) => false,
        // The text of a documentation comment, `# […]` or `# ! […]`.
        TokenTree::Group(_) => {
            let is_sign = |at: Option<usize>, sign| {
                at.and_then(|at| tokens.get(at)).is_some_and(
                    |token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign),
                )
            };
            !(is_sign(at.checked_sub(2), '#')
                || is_sign(at.checked_sub(2), '!') && is_sign(at.checked_sub(3), '#'))
        }
        _ => true,
    };
    let goes_on = matches!(tokens.get(at + 1), Some(TokenTree::Ident(_)));
    ends_before && goes_on && DECLARATIONS.iter().any(|known| *word == *known)
}
