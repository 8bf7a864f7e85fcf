//! Expressions: Rust expressions, read as ours.

use super::{Note, broken};
use crate::ast::{AttributeText, Expression, ExpressionKind};
use proc_macro2::Ident;
use syn::spanned::Spanned;
use syn::{BinOp, Expr, Lit, UnOp};

/// A Rust expression as one of ours.
pub(super) fn expression(expr: &Expr, notes: &mut Vec<Note>) -> Expression {
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
