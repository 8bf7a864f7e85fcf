//! Parts of arrays as other languages write them, `x[0, :]`: what to write instead.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};

/// What is said of a part in brackets.
pub(super) const NO_PART: &str = "a part of an array is taken by an operator, not in brackets";

/// The first part of an array in brackets that Rust cannot read, and what to write for it: one with
/// a `:` or a comma in the brackets behind a value.
pub(super) fn first(tokens: &TokenStream) -> Option<(Span, String)> {
    let mut before: [Option<TokenTree>; 2] = [None, None];
    for token in tokens.clone() {
        if let TokenTree::Group(group) = &token {
            let is_part = group.delimiter() == Delimiter::Bracket
                && ends_a_value(&before)
                && group.stream().into_iter().any(|token| is(&token, ':') || is(&token, ','))
                && !has_path(group);
            if is_part {
                return Some((group.span_open(), instead_of(before[1].as_ref(), group)));
            }
            if let Some(inner) = first(&group.stream()) {
                return Some(inner);
            }
        }
        before = [before[1].take(), Some(token)];
    }
    None
}

/// Whether brackets behind two tokens are a part of what they end: of a name that is no type, or of
/// a value in parentheses.
fn ends_a_value([first, last]: &[Option<TokenTree>; 2]) -> bool {
    match (first, last) {
        (Some(TokenTree::Ident(word)), Some(TokenTree::Ident(_))) => word == "loss",
        (Some(before), Some(TokenTree::Ident(_))) => !is(before, ':') && !is(before, '|'),
        // The shapes of an operator stand behind a word.
        (None, Some(TokenTree::Ident(word))) => word != "shape",
        (_, Some(TokenTree::Group(group))) => group.delimiter() == Delimiter::Parenthesis,
        _ => false,
    }
}

fn is(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(sign) if sign.as_char() == wanted)
}

/// Whether a `:` is half of a `::` in a path.
fn has_path(group: &Group) -> bool {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let is_colon = |token: &TokenTree| is(token, ':');
    let mut places = tokens.windows(3);
    places.any(|of| is_colon(&of[0]) && is_colon(&of[1]) && matches!(of[2], TokenTree::Ident(_)))
}

/// The call that takes the part, where its bounds are numbers.
fn instead_of(before: Option<&TokenTree>, group: &Group) -> String {
    let name = match before {
        Some(TokenTree::Ident(name)) => name.to_string(),
        _ => "x".to_owned(),
    };
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let axes: Vec<Option<[String; 3]>> =
        tokens.split(|token| is(token, ',')).filter(|axis| !axis.is_empty()).map(bounds).collect();
    let Some(axes) = axes.into_iter().collect::<Option<Vec<_>>>() else {
        return format!(
            "write `slice({name}, begin = [0, _], end = [1, _])`, with an entry for each axis and `_` where all of it is meant, or `take({name}, ids)` for rows that ids name"
        );
    };
    let list = |at: usize| axes.iter().map(|axis| axis[at].as_str()).collect::<Vec<_>>().join(", ");
    let steps = if axes.iter().any(|axis| axis[2] != "_") {
        format!(", step = [{}]", list(2))
    } else {
        String::new()
    };
    format!(
        "write `slice({name}, begin = [{}], end = [{}]{steps})`, or `take({name}, ids)` for rows that ids name",
        list(0),
        list(1)
    )
}

/// `begin`, `end` and `step` of `1:3`, `:`, `::2`, `1..3`, or `0`, which is a part of one.
fn bounds(axis: &[TokenTree]) -> Option<[String; 3]> {
    let text: String = axis.iter().map(TokenTree::to_string).collect();
    let text = text.replace("..", ":");
    let mut bounds = text.split(':').map(|bound| match bound.parse::<i64>() {
        _ if bound.is_empty() => Some("_".to_owned()),
        Ok(number) => Some(number.to_string()),
        Err(_) => None,
    });
    let open = || Some("_".to_owned());
    let begin = bounds.next()??;
    let Some(end) = bounds.next() else {
        let end = match begin.parse::<i64>().ok()? {
            -1 => "_".to_owned(),
            begin => (begin + 1).to_string(),
        };
        return Some([begin, end, open()?]);
    };
    Some([begin, end?, bounds.next().unwrap_or_else(open)?])
}
