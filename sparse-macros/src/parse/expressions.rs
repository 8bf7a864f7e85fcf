//! Expressions: Rust expressions, read as ours.

use super::{Notes, attributes, broken};
use crate::ast::{AttributeText, Callee, Expression, ExpressionKind, Import};
use proc_macro2::{Ident, Span};
use sparse_core::diagnostics::Code;
use syn::spanned::Spanned;
use syn::{BinOp, Expr, Lit, Member, Path, UnOp};

/// What is said of `sum::<f32>(x)`.
const NO_TYPES: &str = "operators and blocks have no type parameters: leave out `::<…>`";

/// What is said of `concat([x, y])`: lists are what attributes take.
pub(crate) const NO_LIST: &str =
    "write the operands one after the other, without brackets: `concat(x, y)`";

/// A Rust expression as one of ours.
pub(super) fn expression(expr: &Expr, notes: &mut Notes) -> Expression {
    // The span of an expression is found by writing it out: not to be asked for at every level of a nest.
    let span = || expr.span();
    let call = |name: &str, span, operands| ExpressionKind::Call {
        callee: Callee { name: Ident::new(name, span), path: None },
        operands,
        attributes: Vec::new(),
    };
    attributes::of_expression(expr, notes);
    let kind = match expr {
        Expr::Paren(inner) => return expression(&inner.expr, notes),
        Expr::Group(inner) => return expression(&inner.expr, notes),
        Expr::Path(path) => match path.path.get_ident() {
            Some(name) => ExpressionKind::Name(name.clone()),
            None => broken(notes, span(), "expected the name of a value"),
        },
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().map_or_else(
                |_| broken(notes, span(), "expected a number"),
                ExpressionKind::Number,
            ),
            Lit::Float(number) => match number.base10_parse::<f64>() {
                Ok(number) if number.is_finite() => ExpressionKind::Number(number),
                Ok(_) => broken(notes, span(), "the number is beyond the range of `f64`"),
                Err(_) => broken(notes, span(), "expected a number"),
            },
            _ => broken(notes, span(), "expected a number"),
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
                    let message = "expected `+`, `-`, `*`, `/` or a comparison";
                    broken_but(
                        notes,
                        binary.op.span(),
                        message,
                        match binary.op {
                            BinOp::Rem(_) => Some("`modulo(x, y)`"),
                            BinOp::BitXor(_) => Some("`power(x, y)`"),
                            BinOp::And(_) | BinOp::BitAnd(_) => Some("`logical_and(x, y)`"),
                            BinOp::Or(_) | BinOp::BitOr(_) => Some("`logical_or(x, y)`"),
                            _ => None,
                        },
                    )
                }
            }
        }
        Expr::Call(call) => match &*call.func {
            Expr::Path(path) => match path.path.get_ident() {
                Some(name) => {
                    let callee = Callee { name: name.clone(), path: None };
                    arguments(callee, None, call.args.iter(), notes)
                }
                None => match by_path(&path.path, notes) {
                    Some(callee) => arguments(callee, None, call.args.iter(), notes),
                    None => broken(notes, span(), NO_TYPES),
                },
            },
            _ => broken(notes, span(), "expected the name of an operator or a block"),
        },
        Expr::MethodCall(call) if call.turbofish.is_some() => {
            broken(notes, call.turbofish.span(), NO_TYPES)
        }
        Expr::MethodCall(call) => {
            let receiver = expression(&call.receiver, notes);
            let callee = Callee { name: call.method.clone(), path: None };
            arguments(callee, Some(receiver), call.args.iter(), notes)
        }
        other => of_rust(other, notes),
    };
    let span = match &kind {
        ExpressionKind::Call { callee, .. } => callee.name.span(),
        ExpressionKind::Name(name) => name.span(),
        _ => span(),
    };
    Expression { span, kind }
}

/// An expression that Rust has and the language has not: pointed at where it begins to be one.
fn of_rust(expr: &Expr, notes: &mut Notes) -> ExpressionKind {
    let (span, instead) = match expr {
        Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
            (unary.op.span(), Some("write `logical_not(x)`"))
        }
        // `x ** 2` of other languages.
        Expr::Unary(unary) => (unary.op.span(), Some("write `power(x, y)`")),
        Expr::If(_) => (expr.span(), Some("write `select(condition, x, y)`")),
        Expr::Index(index) => (
            index.bracket_token.span.join(),
            Some(
                "write `slice(x, begin = …, end = …)` for a part, or `take(x, ids)` for rows that ids name",
            ),
        ),
        Expr::Cast(cast) => (
            cast.as_token.span(),
            Some("leave `as` out: values have the element type of the model, its `dtype`"),
        ),
        Expr::Field(field) => {
            let transposes =
                matches!(&field.member, Member::Named(name) if name == "T" || name == "t");
            (field.member.span(), transposes.then_some("write `transpose(x)`, or in a `dot` the attribute `transpose_lhs` or `transpose_rhs`"))
        }
        Expr::Array(array) => (array.bracket_token.span.join(), Some(NO_LIST)),
        other => (other.span(), None),
    };
    let message = "expected a value: a name, a number, an operator or a call";
    match instead {
        Some(help) => {
            notes.error(Code::UnsupportedExpression, span, message.to_owned(), help);
            ExpressionKind::Broken
        }
        None => broken(notes, span, message),
    }
}

/// What Rust writes so, and the language otherwise.
fn broken_but(
    notes: &mut Notes,
    span: Span,
    message: &str,
    instead: Option<&str>,
) -> ExpressionKind {
    match instead {
        Some(instead) => {
            let help = format!("write {instead}");
            notes.error(Code::UnsupportedExpression, span, message.to_owned(), &help);
            ExpressionKind::Broken
        }
        None => broken(notes, span, message),
    }
}

/// `blocks::linear`: a block of elsewhere.
fn by_path(path: &Path, notes: &mut Notes) -> Option<Callee> {
    let name = path.segments.last()?.ident.clone();
    if path.segments.iter().any(|segment| !segment.arguments.is_none()) {
        return None;
    }
    let words: Vec<String> =
        path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let key = format!("{}{}", path.leading_colon.map_or("", |_| "::"), words.join("::"));
    notes.imports.push(Import { key: key.clone(), path: path.clone() });
    Some(Callee { name, path: Some(key) })
}

fn arguments<'a>(
    callee: Callee,
    receiver: Option<Expression>,
    arguments: impl Iterator<Item = &'a Expr>,
    notes: &mut Notes,
) -> ExpressionKind {
    let mut operands: Vec<Expression> = receiver.into_iter().collect();
    let mut attributes = Vec::new();
    for argument in arguments {
        match argument {
            Expr::Assign(assign) => match &*assign.left {
                Expr::Path(path) if path.path.get_ident().is_some() => {
                    let name = path.path.get_ident().cloned();
                    let value = attribute(&assign.right, notes);
                    attributes.extend(name.map(|name| (name, value)));
                }
                other => {
                    broken(notes, other.span(), "expected the name of an attribute");
                }
            },
            other => operands.push(operand(other, notes)),
        }
    }
    ExpressionKind::Call { callee, operands, attributes }
}

/// What stands in a call without a name. Whether that may be a flag or a list depends on what is called.
fn operand(expr: &Expr, notes: &mut Notes) -> Expression {
    match (expr, attribute_of(expr)) {
        (_, Some(text)) => {
            Expression { span: expr.span(), kind: ExpressionKind::Attribute(Box::new(text)) }
        }
        (expr, None) => expression(expr, notes),
    }
}

/// A flag or a list of integers.
fn attribute_of(expr: &Expr) -> Option<AttributeText> {
    match expr {
        Expr::Paren(inner) => attribute_of(&inner.expr),
        Expr::Group(inner) => attribute_of(&inner.expr),
        Expr::Lit(_) | Expr::Array(_) => match attribute(expr, &mut Notes::default()) {
            text @ (AttributeText::Flag(_) | AttributeText::List(_)) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// The value of an attribute.
pub(super) fn attribute(expr: &Expr, notes: &mut Notes) -> AttributeText {
    match expr {
        // What a macro was given as `$k:literal` or `$k:expr` comes in a group without parentheses.
        Expr::Paren(inner) => attribute(&inner.expr, notes),
        Expr::Group(inner) => attribute(&inner.expr, notes),
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
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
            match attribute(&unary.expr, notes) {
                AttributeText::Integer(number) => AttributeText::Integer(-number),
                AttributeText::Number(number) => AttributeText::Number(-number),
                AttributeText::Word(_) | AttributeText::Expression(_) => {
                    AttributeText::Expression(expression(expr, notes))
                }
                _ => AttributeText::Other,
            }
        }
        Expr::Array(array) => {
            let entries = array.elems.iter().map(|entry| match (entry, attribute(entry, notes)) {
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
            let mut inner = Notes::default();
            let value = expression(other, &mut inner);
            if inner.errors.is_empty() {
                notes.imports.extend(inner.imports);
                AttributeText::Expression(value)
            } else {
                AttributeText::Other
            }
        }
    }
}
