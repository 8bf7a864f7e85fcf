//! Declarations of operators: the columns of an operator spec, line by line.

use super::delimited::group;
use super::expressions;
use super::{Notes, attributes, parse_piece};
use crate::ast::{Expression, Function, Import, Operator, OperatorRule, RowNames};
use crate::report::Report;
use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, TokenStream, TokenTree};
use quote::quote;
use sparse_core::diagnostics::{Code, nearest};
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Token, Visibility};

/// The words that begin a line, for suggestions.
pub(super) const LINES: [&str; 9] = [
    "rule",
    "shape",
    "gradient",
    "reads",
    "stores",
    "each",
    "derivative",
    "at_zero",
    "slope_at_zero",
];

/// An operator behind its keyword.
pub(super) fn operator(
    stream: ParseStream<'_>,
    docs: Vec<Attribute>,
    visibility: Visibility,
    imports: &mut Vec<Import>,
    report: &mut Report,
) -> syn::Result<Operator> {
    let before = report.n_errors();
    let name: Ident = stream.parse()?;
    let list =
        group(stream, Delimiter::Parenthesis, name.span(), "`(` and the operator's operands")?;
    let content =
        group(stream, Delimiter::Brace, list.span(), "`{` and what computes the operator")?;
    let tokens = elsewhere(quote!(operator #name #list #content));
    let operands = parse_piece(list.stream(), imports, report, |stream, _| {
        let parse = |stream: ParseStream<'_>| stream.parse::<Ident>();
        Punctuated::<_, Token![,]>::parse_terminated_with(stream, parse)
    });
    let mut operator = Operator {
        docs,
        visibility,
        name,
        operands: operands.into_iter().flatten().collect(),
        rules: Vec::new(),
        shape: None,
        gradients: Vec::new(),
        reads: Vec::new(),
        stores: None,
        each: None,
        derivative: None,
        at_zero: None,
        slope_at_zero: None,
        tokens,
        broken: false,
    };
    let (mut pieces, rest) = super::pieces(content.stream());
    pieces.extend((!rest.is_empty()).then_some(rest));
    for piece in pieces {
        parse_piece(piece, imports, report, |stream, notes| line(stream, &mut operator, notes));
    }
    if report.n_errors() == before {
        check_whole(&operator, report);
    }
    operator.broken = report.n_errors() > before;
    Ok(operator)
}

/// One line of the body.
fn line(stream: ParseStream<'_>, operator: &mut Operator, notes: &mut Notes) -> syn::Result<()> {
    attributes::documentation(stream, notes)?;
    let word: Ident = stream.parse()?;
    let mut twice = false;
    match word.to_string().as_str() {
        "rule" => {
            let signature = until_equals(stream)?;
            let function = function(stream, operator, notes)?;
            operator.rules.push(OperatorRule { span: word.span(), signature, function });
        }
        "shape" if stream.peek(Token![=]) => {
            let help = "write `shape [n, k] -> [n];`, the shapes of the operands and of the result";
            notes.error(Code::OperatorShape, word.span(), "a shape rule is no value".into(), help);
            stream.parse::<TokenStream>()?;
        }
        "shape" => {
            let text = text_of(stream.parse()?);
            twice = operator.shape.replace((word.span(), text)).is_some();
        }
        "gradient" => {
            let operand: Ident = stream.parse()?;
            stream.parse::<Token![=]>()?;
            let formula: Expression = expressions::next(stream, notes)?;
            check_operand(Code::OperatorGradient, &operand, operator, notes);
            twice = operator.gradients.iter().any(|(known, _)| *known == operand);
            operator.gradients.push((operand, formula));
        }
        "reads" => {
            let table: Ident = stream.parse()?;
            check_operand(Code::OperatorRows, &table, operator, notes);
            let Some(names) = row_names(stream, operator, notes)? else { return Ok(()) };
            twice = operator.reads.iter().any(|(known, _)| *known == table);
            operator.reads.push((table, names));
        }
        "stores" => {
            let Some(names) = row_names(stream, operator, notes)? else { return Ok(()) };
            twice = operator.stores.replace((word.span(), names)).is_some();
        }
        "each" | "derivative" => {
            stream.parse::<Token![=]>()?;
            let function = function(stream, operator, notes)?;
            let place = if word == "each" { &mut operator.each } else { &mut operator.derivative };
            twice = place.replace(function).is_some();
        }
        "at_zero" | "slope_at_zero" => {
            stream.parse::<Token![=]>()?;
            let minus = stream.parse::<Option<Token![-]>>()?.map_or(1.0, |_| -1.0);
            let number: syn::Lit = stream.parse()?;
            let number: f64 = match &number {
                syn::Lit::Int(number) => number.base10_parse()?,
                syn::Lit::Float(number) => number.base10_parse()?,
                other => return Err(syn::Error::new(other.span(), "expected a number")),
            };
            let place =
                if word == "at_zero" { &mut operator.at_zero } else { &mut operator.slope_at_zero };
            twice = place.replace(minus * number).is_some();
        }
        other => {
            let message = format!("`{other}` does not begin a line of an operator");
            let help = match nearest(other, LINES) {
                Some(known) => format!("write `{known}`"),
                None => format!("lines begin with `{}`", LINES.join("`, `")),
            };
            notes.error(Code::OperatorBody, word.span(), message, &help);
            stream.parse::<TokenStream>()?;
        }
    }
    if twice {
        let message = format!("`{word}` of `{}` is given twice", operator.name);
        notes.error(Code::OperatorBody, word.span(), message, "leave one of them out");
    }
    if stream.is_empty() { Ok(()) } else { Err(stream.error("expected `;`")) }
}

/// `by columns(x)` or `by ids(x)`; `None` after an error.
fn row_names(
    stream: ParseStream<'_>,
    operator: &Operator,
    notes: &mut Notes,
) -> syn::Result<Option<RowNames>> {
    let begin = stream.span();
    let rest: TokenStream = stream.parse()?;
    let parse = |stream: ParseStream<'_>| {
        let (by, names): (Ident, Ident) = (stream.parse()?, stream.parse()?);
        let content;
        syn::parenthesized!(content in stream);
        let operand: Ident = content.parse()?;
        let is_whole = by == "by" && content.is_empty() && stream.is_empty();
        Ok((is_whole, names, operand))
    };
    let found = syn::parse::Parser::parse2(parse, rest);
    let is_known = |names: &Ident| names == "columns" || names == "ids";
    let Some((_, names, operand)) =
        found.ok().filter(|(whole, names, _)| *whole && is_known(names))
    else {
        let message = "expected what names table rows".to_owned();
        let help = "write `by columns(x)`, the columns that a csr operand `x` stores, or `by \
                    ids(x)`, the ids in an operand";
        notes.error(Code::OperatorRows, begin, message, help);
        return Ok(None);
    };
    check_operand(Code::OperatorRows, &operand, operator, notes);
    Ok(Some(RowNames { by_ids: names == "ids", operand }))
}

fn check_operand(code: Code, operand: &Ident, operator: &Operator, notes: &mut Notes) {
    if operator.operands.contains(operand) {
        return;
    }
    let message = format!("`{}` has no operand `{operand}`", operator.name);
    let operands: Vec<String> = operator.operands.iter().map(Ident::to_string).collect();
    let help = format!("its operands are `{}`", operands.join("`, `"));
    notes.error(code, operand.span(), message, &help);
}

/// What an operator must have, and what does not go together.
fn check_whole(operator: &Operator, report: &mut Report) {
    let Operator { name, each, derivative, .. } = operator;
    // Names that formulas have for something else.
    let has_formulas = derivative.is_some() || !operator.gradients.is_empty();
    for (place, operand) in operator.operands.iter().enumerate() {
        let why = match () {
            () if operand == "grad" && has_formulas => {
                "stands for the gradient that arrives, in formulas"
            }
            () if operand == "out" && has_formulas => "stands for the result, in formulas",
            () if operator.operands[..place].contains(operand) => "names two operands",
            () => continue,
        };
        let (message, help) = (format!("`{operand}` {why}"), "give the operand another name");
        report.error(Code::OperatorBody, operand.span(), message, Some(help.to_owned()));
    }
    let (message, help) = match () {
        () if operator.operands.is_empty() => (
            format!("the operator `{name}` has no operand"),
            format!("write `operator {name}(x) {{ … }}`"),
        ),
        () if operator.rules.is_empty() && each.is_none() => (
            format!("nothing computes the operator `{name}`"),
            "write `each = crate::function;` for a function of each element, or a line such as \
             `rule dense -> dense = crate::function;` for each combination of storage types"
                .to_owned(),
        ),
        () if each.is_some() && (!operator.rules.is_empty() || operator.shape.is_some()) => (
            format!("`{name}` is a function of each element, and has rules or a shape too"),
            "leave out `each`, or `rule` and `shape`: those of a function of each element are known".to_owned(),
        ),
        () if each.is_some() && (!operator.reads.is_empty() || operator.stores.is_some()) => (
            format!("`{name}` is a function of each element, and says which table rows it reads or stores"),
            "leave out `reads` and `stores`: a function of each element keeps the rows of its operand".to_owned(),
        ),
        () if each.is_some() && operator.operands.len() > 1 => (
            format!("`{name}` is a function of each element of {} operands", operator.operands.len()),
            "`each` is for one operand; write a `rule` for more".to_owned(),
        ),
        () if each.is_none()
            && (derivative.is_some()
                || operator.at_zero.is_some()
                || operator.slope_at_zero.is_some()) =>
        {
            (
                format!("`{name}` is not a function of each element"),
                "`derivative`, `at_zero` and `slope_at_zero` go with `each`; write `gradient x = …;` here".to_owned(),
            )
        }
        () if derivative.is_some() && !operator.gradients.is_empty() => (
            format!("`{name}` has a derivative and a gradient"),
            "leave one of them out: the gradient is `grad` times the derivative".to_owned(),
        ),
        () => return,
    };
    report.error(Code::OperatorBody, name.span(), message, Some(help));
}

/// The path of a function: the rest of the line. What other modules may use names it from the root
/// of its crate.
fn function(
    stream: ParseStream<'_>,
    operator: &Operator,
    notes: &mut Notes,
) -> syn::Result<Function> {
    let span = stream.span();
    let path: TokenStream = stream.parse()?;
    let Some(first) = path.clone().into_iter().next() else {
        return Err(syn::Error::new(span, "expected the path of a function"));
    };
    // Macros hand paths on in groups, and `$crate` in two tokens.
    let is_path = matches!(&first, TokenTree::Punct(sign) if sign.as_char() == '$')
        || matches!(syn::parse2(path.clone()), Ok(Expr::Path(_) | Expr::Group(_)));
    if !is_path {
        let message = "expected the path of a function".to_owned();
        let help = "declare `fn function(x: f32) -> f32 { … }`, and write `crate::function`";
        notes.error(Code::OperatorPath, span, message, help);
        return Ok(Function { span, path });
    }
    let is_absolute = match &first {
        TokenTree::Ident(word) => word == "crate" || *word == "$crate",
        TokenTree::Punct(punct) => punct.as_char() == ':' || punct.as_char() == '$',
        _ => false,
    };
    if !is_absolute && !matches!(operator.visibility, Visibility::Inherited) {
        let name = &operator.name;
        let message =
            format!("the path `{}` means something only in this module", text_of(path.clone()));
        let help = format!(
            "`{name}` may be used in others: write the path from the root, `crate::…`, or leave out `{}`",
            text_of(quote::ToTokens::to_token_stream(&operator.visibility))
        );
        notes.error(Code::OperatorPath, span, message, &help);
    }
    Ok(Function { span, path })
}

/// The text up to `=`.
fn until_equals(stream: ParseStream<'_>) -> syn::Result<String> {
    let mut tokens = TokenStream::new();
    while !stream.peek(Token![=]) {
        tokens.extend([stream.parse::<TokenTree>().map_err(|error| {
            syn::Error::new(error.span(), "expected `=` and the path of a function")
        })?]);
    }
    stream.parse::<Token![=]>()?;
    Ok(text_of(tokens))
}

/// Tokens on one line, as rules are written: `[n, k] same -> [n]`.
fn text_of(tokens: TokenStream) -> String {
    let text = tokens.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.replace(" ,", ",").replace("- >", "->").replace(" ::", "::");
    text.replace(":: ", "::").replace("[ ", "[").replace(" ]", "]")
}

/// The same tokens for a macro that other crates call: `crate` is the crate that they are written
/// in.
fn elsewhere(tokens: TokenStream) -> TokenStream {
    let mut result = TokenStream::new();
    for token in tokens {
        match token {
            TokenTree::Ident(word) if word == "crate" => {
                let dollar = Punct::new('$', Spacing::Alone);
                result.extend([TokenTree::Punct(dollar), TokenTree::Ident(word)]);
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), elsewhere(group.stream()));
                inner.set_span(group.span());
                result.extend([TokenTree::Group(inner)]);
            }
            other => result.extend([other]),
        }
    }
    result
}
