//! Tokens to tree. Tolerant: a declaration that does not parse loses only itself.

use crate::ast::{
    ArrayType, AttributeText, Declaration, Expression, ExpressionKind, Extent, Initializer, Input,
    Let, Model, Parameter,
};
use crate::report::Report;
use proc_macro2::{Group, TokenStream, TokenTree};
use quote::ToTokens;
use sparse_core::diagnostics::{Code, nearest};
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Attribute, BinOp, Expr, Ident, Lit, Token, UnOp, Visibility, bracketed};

/// The words that begin a declaration, for suggestions.
const DECLARATIONS: [&str; 9] =
    ["input", "label", "param", "let", "loss", "output", "fallback", "dtype", "fuse"];

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
        match (|stream: ParseStream<'_>| declaration(stream, &mut notes)).parse2(piece) {
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
    span: proc_macro2::Span,
    message: String,
    help: Option<String>,
}

impl Note {
    fn syntax(error: &syn::Error) -> Note {
        Note { code: Code::Syntax, span: error.span(), message: error.to_string(), help: None }
    }
}

fn declaration(stream: ParseStream<'_>, notes: &mut Vec<Note>) -> syn::Result<Option<Declaration>> {
    let docs = stream.call(Attribute::parse_outer)?;
    if stream.peek(Token![let]) {
        stream.parse::<Token![let]>()?;
        return let_declaration(stream, notes).map(Some);
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
            notes.push(Note {
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

fn let_declaration(stream: ParseStream<'_>, notes: &mut Vec<Note>) -> syn::Result<Declaration> {
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
            notes.push(Note::syntax(&error));
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

fn array_type(stream: ParseStream<'_>) -> syn::Result<ArrayType> {
    let storage: Ident = stream.parse()?;
    let element = if stream.parse::<Option<Token![<]>>()?.is_some() {
        let element = stream.parse()?;
        stream.parse::<Token![>]>()?;
        Some(element)
    } else {
        None
    };
    let content;
    bracketed!(content in stream);
    let mut dims = Vec::new();
    while !content.is_empty() {
        dims.push(if content.peek(Token![_]) {
            content.parse::<Token![_]>()?;
            Extent::Inferred
        } else if content.peek(syn::LitInt) {
            Extent::Size(content.parse::<syn::LitInt>()?.base10_parse()?)
        } else {
            Extent::Name(content.parse().map_err(|error| {
                syn::Error::new(error.span(), "expected a dimension: a name, a number or `_`")
            })?)
        });
        if !content.is_empty() {
            content.parse::<Token![,]>()?;
        }
    }
    let span = storage.span();
    Ok(ArrayType { storage, element, dims, span })
}

/// A Rust expression as one of ours.
fn expression(expr: &Expr, notes: &mut Vec<Note>) -> Expression {
    let span = expr.span();
    let call = |name: &str, span, operands| ExpressionKind::Call {
        operator: Ident::new(name, span),
        operands,
        attributes: Vec::new(),
    };
    let kind = match expr {
        Expr::Paren(inner) => return expression(&inner.expr, notes),
        Expr::Group(inner) => return expression(&inner.expr, notes),
        Expr::Path(path) => match path.path.get_ident() {
            Some(name) => ExpressionKind::Name(name.clone()),
            None => broken(notes, span, "expected the name of a value"),
        },
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number
                .base10_parse()
                .map_or_else(|_| broken(notes, span, "expected a number"), ExpressionKind::Number),
            Lit::Float(number) => number
                .base10_parse()
                .map_or_else(|_| broken(notes, span, "expected a number"), ExpressionKind::Number),
            _ => broken(notes, span, "expected a number"),
        },
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
            let operand = expression(&unary.expr, notes);
            match operand.kind {
                ExpressionKind::Number(number) => ExpressionKind::Number(-number),
                _ => call("negative", unary.op.span(), vec![operand]),
            }
        }
        Expr::Binary(binary) => {
            let name = match binary.op {
                BinOp::Add(_) => Some("add"),
                BinOp::Sub(_) => Some("subtract"),
                BinOp::Mul(_) => Some("multiply"),
                BinOp::Div(_) => Some("divide"),
                BinOp::Eq(_) => Some("equal"),
                BinOp::Ne(_) => Some("not_equal"),
                BinOp::Gt(_) => Some("greater"),
                BinOp::Ge(_) => Some("greater_equal"),
                BinOp::Lt(_) => Some("less"),
                BinOp::Le(_) => Some("less_equal"),
                _ => None,
            };
            match name {
                Some(name) => {
                    let operands =
                        vec![expression(&binary.left, notes), expression(&binary.right, notes)];
                    call(name, binary.op.span(), operands)
                }
                None => {
                    broken(notes, binary.op.span(), "expected `+`, `-`, `*`, `/` or a comparison")
                }
            }
        }
        Expr::Call(call) => match &*call.func {
            Expr::Path(path) => match path.path.get_ident() {
                Some(name) => arguments(name.clone(), None, call.args.iter(), notes),
                None => broken(notes, span, "expected the name of an operator"),
            },
            _ => broken(notes, span, "expected the name of an operator"),
        },
        Expr::MethodCall(call) => {
            let receiver = expression(&call.receiver, notes);
            arguments(call.method.clone(), Some(receiver), call.args.iter(), notes)
        }
        _ => broken(notes, span, "expected a value: a name, a number, an operator or a call"),
    };
    let span = match &kind {
        ExpressionKind::Call { operator, .. } => operator.span(),
        _ => span,
    };
    Expression { span, kind }
}

fn broken(notes: &mut Vec<Note>, span: proc_macro2::Span, message: &str) -> ExpressionKind {
    notes.push(Note { code: Code::Syntax, span, message: message.into(), help: None });
    ExpressionKind::Broken
}

fn arguments<'a>(
    operator: Ident,
    receiver: Option<Expression>,
    arguments: impl Iterator<Item = &'a Expr>,
    notes: &mut Vec<Note>,
) -> ExpressionKind {
    let mut operands: Vec<Expression> = receiver.into_iter().collect();
    let mut attributes = Vec::new();
    for argument in arguments {
        match argument {
            Expr::Assign(assign) => match &*assign.left {
                Expr::Path(path) if path.path.get_ident().is_some() => {
                    let name = path.path.get_ident().cloned();
                    attributes.extend(name.map(|name| (name, attribute(&assign.right))));
                }
                other => {
                    broken(notes, other.span(), "expected the name of an attribute");
                }
            },
            other => operands.push(expression(other, notes)),
        }
    }
    ExpressionKind::Call { operator, operands, attributes }
}

fn attribute(expr: &Expr) -> AttributeText {
    match expr {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Bool(flag) => AttributeText::Flag(flag.value),
            Lit::Int(number) => {
                number.base10_parse().map_or(AttributeText::Other, AttributeText::Integer)
            }
            Lit::Float(number) => {
                number.base10_parse().map_or(AttributeText::Other, AttributeText::Number)
            }
            _ => AttributeText::Other,
        },
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => match attribute(&unary.expr) {
            AttributeText::Integer(number) => AttributeText::Integer(-number),
            AttributeText::Number(number) => AttributeText::Number(-number),
            AttributeText::Word(_) | AttributeText::Expression(_) => {
                AttributeText::Expression(expression(expr, &mut Vec::new()))
            }
            _ => AttributeText::Other,
        },
        Expr::Array(array) => {
            let entries = array.elems.iter().map(|entry| match (entry, attribute(entry)) {
                (Expr::Infer(_), _) => Some(None),
                (_, AttributeText::Integer(number)) => Some(Some(number)),
                _ => None,
            });
            entries.collect::<Option<_>>().map_or(AttributeText::Other, AttributeText::List)
        }
        Expr::Path(path) => match path.path.get_ident() {
            Some(word) => AttributeText::Word(word.clone()),
            None => AttributeText::Other,
        },
        other => {
            let mut notes = Vec::new();
            let value = expression(other, &mut notes);
            if notes.is_empty() { AttributeText::Expression(value) } else { AttributeText::Other }
        }
    }
}
