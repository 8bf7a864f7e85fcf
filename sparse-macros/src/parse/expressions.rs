//! Expressions: Rust expressions, read as ours.

use super::depth::in_parentheses;
use super::{Note, Notes, attributes, broken};
use crate::arithmetic::{Arithmetic, Literal};
use crate::ast::{AttributeText, Callee, Expression, ExpressionKind, Import};
use proc_macro2::{Ident, Span};
use sparse_core::diagnostics::Code;
use std::rc::Rc;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{BinOp, Expr, Lit, Member, Path, Token, UnOp};

/// What is said of `sum::<f32>(x)`.
const NO_TYPES: &str = "operators and blocks have no type parameters: leave out `::<…>`";

/// What is said of `concat([x, y])`: lists are what attributes take.
pub(crate) const NO_LIST: &str =
    "write the operands one after the other, without brackets: `concat(x, y)`";

/// What is said of `x as f32`.
pub(crate) const NO_CAST: &str =
    "leave `as` out: values have the element type of the model, its `dtype`";

/// Arithmetic of numbers and names, unless it was cut.
fn arithmetic(expr: &Expr, notes: &mut Notes) -> Option<Rc<Arithmetic>> {
    let found = Arithmetic::of(expr)?;
    if found.names().iter().any(|name| notes.cut.group(name).is_some()) {
        return None;
    }
    notes.keep_paths(&found);
    Some(Rc::new(found))
}

/// The expression that comes next.
pub(super) fn next(stream: ParseStream<'_>, notes: &mut Notes) -> syn::Result<Expression> {
    Ok(converted(stream.parse()?, notes))
}

/// A Rust expression as one of ours.
pub(super) fn converted(expr: Expr, notes: &mut Notes) -> Expression {
    let value = expression(&expr, notes);
    dismantle(expr);
    value
}

/// Drops an expression without recursion along what is written side by side, `a + b + c` or
/// `x.tanh().tanh()`.
pub(super) fn dismantle(expr: Expr) {
    let mut inner = vec![expr];
    while let Some(expr) = inner.pop() {
        match expr {
            Expr::Assign(expr) => inner.extend([*expr.left, *expr.right]),
            Expr::Await(expr) => inner.push(*expr.base),
            Expr::Binary(expr) => inner.extend([*expr.left, *expr.right]),
            Expr::Call(expr) => {
                inner.push(*expr.func);
                inner.extend(expr.args);
            }
            Expr::Cast(expr) => inner.push(*expr.expr),
            Expr::Field(expr) => inner.push(*expr.base),
            Expr::Group(expr) => inner.push(*expr.expr),
            Expr::Index(expr) => inner.extend([*expr.expr, *expr.index]),
            Expr::MethodCall(expr) => {
                inner.push(*expr.receiver);
                inner.extend(expr.args);
            }
            Expr::Paren(expr) => inner.push(*expr.expr),
            Expr::Try(expr) => inner.push(*expr.expr),
            Expr::Unary(expr) => inner.push(*expr.expr),
            _ => {}
        }
    }
}

/// The same of an expression that is still used. What is first in it is followed by a loop: a sum
/// is as deep as it has terms.
pub(super) fn expression(expr: &Expr, notes: &mut Notes) -> Expression {
    let mut outer: Vec<&Expr> = Vec::new();
    let mut inner = expr;
    attributes::of_expression(inner, notes);
    while let Some(first) = first_of(inner) {
        outer.push(inner);
        inner = first;
        attributes::of_expression(inner, notes);
    }
    let mut value = around(inner, None, notes);
    while let Some(expr) = outer.pop() {
        value = around(expr, Some(value), notes);
    }
    value
}

/// What an expression computes first.
fn first_of(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Paren(inner) => Some(&inner.expr),
        Expr::Group(inner) => Some(&inner.expr),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => Some(&unary.expr),
        Expr::Binary(binary) if operator_of(&binary.op).is_some() => Some(&binary.left),
        Expr::MethodCall(call) if call.turbofish.is_none() => Some(&call.receiver),
        _ => None,
    }
}

/// The operator that a sign stands for.
fn operator_of(sign: &BinOp) -> Option<&'static str> {
    Some(match sign {
        BinOp::Add(_) => "add",
        BinOp::Sub(_) => "subtract",
        BinOp::Mul(_) => "multiply",
        BinOp::Div(_) => "divide",
        BinOp::Eq(_) => "equal",
        BinOp::Ne(_) => "not_equal",
        BinOp::Gt(_) => "greater",
        BinOp::Ge(_) => "greater_equal",
        BinOp::Lt(_) => "less",
        BinOp::Le(_) => "less_equal",
        _ => return None,
    })
}

/// Where an expression is. Of one that is long, where it begins: the span of an expression is found
/// by writing it out, by recursion.
fn span_of(expr: &Expr) -> Span {
    const LONG: usize = 64;
    let (mut first, mut length) = (expr, 0);
    loop {
        first = match first {
            Expr::Await(expr) => &expr.base,
            Expr::Binary(expr) => &expr.left,
            Expr::Call(expr) => &expr.func,
            Expr::Cast(expr) => &expr.expr,
            Expr::Field(expr) => &expr.base,
            Expr::Index(expr) => &expr.expr,
            Expr::MethodCall(expr) => &expr.receiver,
            Expr::Try(expr) => &expr.expr,
            _ => return if length > LONG { first.span() } else { expr.span() },
        };
        length += 1;
    }
}

/// An expression around the value of what it [computes first](first_of).
fn around(expr: &Expr, first: Option<Expression>, notes: &mut Notes) -> Expression {
    // The span of an expression is found by writing it out: not to be asked for at every level of a
    // nest.
    let span = || span_of(expr);
    let call = |name: &str, span, operands| ExpressionKind::Call {
        callee: Callee { name: Ident::new(name, span), path: None },
        operands: Rc::new(operands),
        attributes: Vec::new(),
    };
    let kind = match (expr, first) {
        (Expr::Paren(_) | Expr::Group(_), Some(value)) => return value,
        (Expr::Unary(unary), Some(operand)) => match operand.kind {
            ExpressionKind::Number(number) => ExpressionKind::Number(-number),
            _ => call("negative", unary.op.span(), vec![operand]),
        },
        (Expr::Binary(binary), Some(left)) => {
            let right = expression(&binary.right, notes);
            call(operator_of(&binary.op).unwrap_or_default(), binary.op.span(), vec![left, right])
        }
        (Expr::MethodCall(call), Some(receiver)) => {
            let callee = Callee { name: call.method.clone(), path: None };
            arguments(callee, Some(receiver), &call.args, notes)
        }
        (expr, _) => match alone(expr, notes) {
            Ok(kind) => kind,
            Err(value) => return value,
        },
    };
    let span = match &kind {
        ExpressionKind::Call { callee, .. } => callee.name.span(),
        ExpressionKind::Name(name) => name.span(),
        _ => span(),
    };
    Expression { span, kind }
}

/// What an expression is that computes nothing first; the expression itself where it was [cut
/// out](super::depth::Cut).
fn alone(expr: &Expr, notes: &mut Notes) -> Result<ExpressionKind, Expression> {
    let span = || span_of(expr);
    Ok(match expr {
        Expr::Path(path) => match path.path.get_ident() {
            Some(name) => match notes.cut.group(name).map(in_parentheses) {
                Some(tokens) => {
                    let parsed = syn::parse2::<Expr>(notes.cut.cut(tokens));
                    return Err(match parsed {
                        Ok(expr) => converted(expr, notes),
                        Err(error) => {
                            notes.errors.push(Note::syntax(&error));
                            Expression { span: error.span(), kind: ExpressionKind::Broken }
                        }
                    });
                }
                None => ExpressionKind::Name(name.clone()),
            },
            None => match Arithmetic::of(expr) {
                Some(constant) => {
                    notes.keep_paths(&constant);
                    ExpressionKind::Arithmetic(Rc::new(constant))
                }
                None => broken(notes, span(), "expected the name of a value"),
            },
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
        Expr::Binary(binary) => {
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
        Expr::Call(call) => match &*call.func {
            Expr::Path(path) => match path.path.get_ident() {
                Some(name) => {
                    let callee = Callee { name: name.clone(), path: None };
                    arguments(callee, None, &call.args, notes)
                }
                None => match by_path(&path.path, notes) {
                    Some(callee) => arguments(callee, None, &call.args, notes),
                    None => broken(notes, span(), NO_TYPES),
                },
            },
            _ => broken(notes, span(), "expected the name of an operator or a block"),
        },
        Expr::MethodCall(call) => broken(notes, call.turbofish.span(), NO_TYPES),
        Expr::Cast(cast) => match arithmetic(expr, notes) {
            Some(number) => {
                return Err(Expression {
                    span: cast.as_token.span(),
                    kind: ExpressionKind::Arithmetic(number),
                });
            }
            None => of_rust(expr, notes),
        },
        other => of_rust(other, notes),
    })
}

/// An expression that Rust has and the language has not: pointed at where it begins to be one.
fn of_rust(expr: &Expr, notes: &mut Notes) -> ExpressionKind {
    let (span, instead) = match expr {
        Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
            (unary.op.span(), Some("write `logical_not(x)`"))
        }
        // `x ** 2` of other languages.
        Expr::Unary(unary) => (unary.op.span(), Some("write `power(x, y)`")),
        Expr::If(_) => (span_of(expr), Some("write `select(condition, x, y)`")),
        Expr::Index(index) => (
            index.bracket_token.span.join(),
            Some(
                "write `slice(x, begin = …, end = …)` for a part, or `take(x, ids)` for rows that ids name",
            ),
        ),
        Expr::Cast(cast) => (cast.as_token.span(), Some(NO_CAST)),
        Expr::Field(field) => {
            let transposes =
                matches!(&field.member, Member::Named(name) if name == "T" || name == "t");
            (field.member.span(), transposes.then_some("write `transpose(x)`, or in a `dot` the attribute `transpose_lhs` or `transpose_rhs`"))
        }
        Expr::Array(array) => (array.bracket_token.span.join(), Some(NO_LIST)),
        other => (span_of(other), None),
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

fn arguments(
    callee: Callee,
    receiver: Option<Expression>,
    list: &Punctuated<Expr, Token![,]>,
    notes: &mut Notes,
) -> ExpressionKind {
    if let Some(Expr::Path(path)) = list.first()
        && let Some(group) = path.path.get_ident().and_then(|word| notes.cut.group(word)).cloned()
    {
        let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
        return match parser.parse2(notes.cut.cut(group.stream())) {
            Ok(list) => {
                let call = arguments(callee, receiver, &list, notes);
                list.into_iter().for_each(dismantle);
                call
            }
            Err(error) => {
                notes.errors.push(Note::syntax(&error));
                ExpressionKind::Broken
            }
        };
    }
    let mut operands: Vec<Expression> = receiver.into_iter().collect();
    let mut attributes = Vec::new();
    for argument in list {
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
    ExpressionKind::Call { callee, operands: Rc::new(operands), attributes }
}

/// What stands in a call without a name. Whether that may be a flag or a list depends on what is
/// called.
fn operand(expr: &Expr, notes: &mut Notes) -> Expression {
    match (expr, attribute_of(expr)) {
        (_, Some(text)) => {
            Expression { span: span_of(expr), kind: ExpressionKind::Attribute(Box::new(text)) }
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
            text
            @ (AttributeText::Flag(_) | AttributeText::List(_) | AttributeText::Entries(_)) => {
                Some(text)
            }
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
                AttributeText::Word(_)
                | AttributeText::Expression(_)
                | AttributeText::Arithmetic(..) => or_arithmetic(expr, notes),
                _ => AttributeText::Other,
            }
        }
        Expr::Array(array) => {
            let entries = array.elems.iter().map(|entry| match entry {
                Expr::Infer(_) => Some(None),
                entry => arithmetic(entry, notes).map(Some),
            });
            let Some(entries) = entries.collect::<Option<Vec<_>>>() else {
                return AttributeText::Other;
            };
            let integer = |entry: &Option<Rc<Arithmetic>>| match entry {
                None => Some(None),
                Some(entry) => match entry.value(&|_| None) {
                    Some(Literal::Integer(integer)) => Some(Some(integer)),
                    _ => None,
                },
            };
            match entries.iter().map(integer).collect::<Option<_>>() {
                Some(integers) => AttributeText::List(integers),
                None => AttributeText::Entries(entries),
            }
        }
        Expr::Path(path) => match path.path.get_ident() {
            Some(word) => AttributeText::Word(word.clone()),
            None => or_arithmetic(expr, notes),
        },
        other => or_arithmetic(other, notes),
    }
}

/// Arithmetic, or a value of the model that has no name.
fn or_arithmetic(expr: &Expr, notes: &mut Notes) -> AttributeText {
    let arithmetic = arithmetic(expr, notes);
    let mut inner = Notes { cut: std::mem::take(&mut notes.cut), ..Notes::default() };
    let value = expression(expr, &mut inner);
    notes.cut = std::mem::take(&mut inner.cut);
    let value = inner.errors.is_empty().then(|| {
        notes.imports.extend(inner.imports);
        notes.constants.extend(inner.constants);
        value
    });
    match (arithmetic, value) {
        (Some(arithmetic), value) => AttributeText::Arithmetic(arithmetic, value),
        (None, Some(value)) => AttributeText::Expression(value),
        (None, None) => AttributeText::Other,
    }
}
