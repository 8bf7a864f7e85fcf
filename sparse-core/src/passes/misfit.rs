//! Shapes that do not fit an operator, in words.

use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{Apply, Graph, Kind, Place};
use crate::operators::{self, MatrixProduct};
use crate::shapes::{Dim, Fault, ShapeError, show};

/// What to say where the operands' shapes, or an attribute, do not fit.
pub(super) fn misfit(graph: &Graph, apply: &Apply, place: Place, error: &ShapeError) -> Diagnostic {
    let operator = apply.operator;
    let words: Vec<String> =
        apply.operands.iter().map(|operand| graph.describe(*operand)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let message = format!("`{}`: {}", operator.name, error.describe(&words));
    let say = |code| Diagnostic::new(code, place, message.clone());
    if let Some(help) = of_label(graph, apply, error) {
        return say(Code::TargetShape).help(help);
    }
    match error {
        ShapeError::Rank { operand, .. } if is_weight(apply, *operand) => {
            let rows =
                graph.shape(apply.operands[0]).first().map_or("n".to_owned(), Dim::to_string);
            say(Code::WrongRank).help(format!(
                "a weight is a number for each row, such as `input weight: dense[{rows}];`; for the loss as a whole write `2.0 * {}(…)`",
                operator.name
            ))
        }
        ShapeError::Rank { operand, .. } if graph.is_number(apply.operands[*operand]) => {
            let number = graph.label(apply.operands[*operand]);
            let arrays = apply.operands.iter().filter(|id| !graph.is_number(**id));
            let like =
                arrays.map(|id| graph.describe(*id)).next_back().unwrap_or_else(|| "x".to_owned());
            say(Code::WrongRank).help(match number.as_str() {
                "0" => format!("write `zeros_like({like})` for the number"),
                "1" => format!("write `ones_like({like})` for the number"),
                _ => format!("write `{number} * ones_like({like})` for the number"),
            })
        }
        ShapeError::Rank { .. } => {
            let shapes = operator.shape.split(" where ").next().unwrap_or_default();
            // A rule that is a function has no text to show.
            if shapes.contains("->") {
                let help = format!("`{}` takes the shapes {shapes}", operator.name);
                say(Code::WrongRank).help(help)
            } else {
                say(Code::WrongRank)
            }
        }
        ShapeError::Mismatch { first, second } if operator.shape == "broadcast" => {
            say(Code::NoBroadcast).help(broadcast_help(&first.2, &second.2))
        }
        ShapeError::Mismatch { first, second } => match of_exchanged(graph, apply)
            .or_else(|| of_turned(graph, apply, first, second))
            .or_else(|| same_extent(&first.2, &second.2))
        {
            Some(help) => say(Code::ShapeMismatch).help(help),
            None => say(Code::ShapeMismatch),
        },
        ShapeError::Extent { wanted, found, .. } => match same_extent(&Dim::Size(*wanted), found) {
            Some(help) => say(Code::ShapeMismatch).help(help),
            None => say(Code::ShapeMismatch),
        },
        ShapeError::Attribute { fault, .. } => say(match fault {
            Fault::Value => Code::AttributeRange,
            Fault::Fit => Code::AttributeShape,
            Fault::NamedExtent => Code::NamedExtent,
            Fault::TooLarge => Code::TooLarge,
        }),
        ShapeError::Axis { found, .. } => say(Code::BadAxis).help(match found.len() {
            0 => "what has no dimensions has no axes".to_owned(),
            rank => format!("axes are 0 to {}, or negative from the end", rank - 1),
        }),
    }
}

/// Whether an operand is what a loss weights rows by.
fn is_weight(apply: &Apply, operand: usize) -> bool {
    matches!(apply.operator.kind, operators::Kind::Loss { .. }) && operand == 2
}

/// The way out where a loss compares scores with a label of another shape.
fn of_label(graph: &Graph, apply: &Apply, error: &ShapeError) -> Option<String> {
    let operators::Kind::Loss { label: meaning, .. } = &apply.operator.kind else { return None };
    let of_label = match error {
        ShapeError::Rank { operand, .. } => *operand == 1,
        ShapeError::Mismatch { first, second } => first.0.max(second.0) == 1,
        _ => false,
    };
    let (score, label) = (*apply.operands.first()?, *apply.operands.get(1)?);
    if !of_label {
        return None;
    }
    let shape = graph.shape(score);
    let name = graph.describe(label);
    let declared = matches!(graph.value(label).kind, Kind::Input | Kind::Label);
    Some(match meaning {
        operators::LossLabel::Class => {
            let rows = shape.first().map_or_else(|| "n".to_owned(), Dim::to_string);
            format!(
                "declare `{name}: dense<u32>[{rows}]`, a class id for each row, or `{name}: dense{}`, a number for each class",
                show(&shape)
            )
        }
        _ if declared => {
            format!("declare `{name}: dense{}`, the shape of the scores", show(&shape))
        }
        _ => format!(
            "the scores have the shape {}: bring `{name}` to it with `reshape`",
            show(&shape)
        ),
    })
}

/// The way out where the two operands fit the other way round, as those of `dot(w, x)`.
fn of_exchanged(graph: &Graph, apply: &Apply) -> Option<String> {
    let &[lhs, rhs] = &apply.operands[..] else { return None };
    let is_flagged =
        apply.operator.attributes.iter().any(|known| apply.attributes.flag(known.name));
    let shapes = [graph.shape(rhs), graph.shape(lhs)];
    // On a copy: what is tried must not unify anything.
    let mut unify = graph.unify.clone();
    let dims = unify.clone();
    let fits =
        crate::shape_rules::infer(apply.operator, &apply.attributes, &shapes, &mut unify).is_ok();
    // Extents of different names must not be taken to be one.
    let holds = shapes.iter().flatten().all(|dim| dims.resolve(dim) == unify.resolve(dim));
    let (lhs, rhs) = (graph.describe(lhs), graph.describe(rhs));
    (fits && holds && !is_flagged).then(|| format!("write `{}({rhs}, {lhs})`", apply.operator.name))
}

/// The way out where a matrix of weights is the other way round.
fn of_turned(
    graph: &Graph,
    apply: &Apply,
    first: &(usize, usize, Dim),
    second: &(usize, usize, Dim),
) -> Option<String> {
    let &[lhs, rhs, ..] = &apply.operands[..] else { return None };
    let shape = graph.shape(rhs);
    let ([rows, columns], 0, 1) = (&shape[..], first.0, second.0) else { return None };
    let other = if second.1 == 0 { columns } else { rows };
    if *other != first.2 || !matches!(graph.value(rhs).kind, Kind::Parameter { .. }) {
        return None;
    }
    let (x, w) = (graph.describe(lhs), graph.describe(rhs));
    let (operator, flag) = (apply.operator, apply.operator.transpose_flag(1));
    let way = match (operator.matrix_product, flag) {
        (MatrixProduct::ByFlags, Some(flag)) if apply.attributes.flag(flag) => {
            format!("leave `{flag}` out")
        }
        (MatrixProduct::ByFlags, Some(flag)) => {
            format!("write `{}({x}, {w}, {flag} = true)`", operator.name)
        }
        (MatrixProduct::WithTransposed(as_it_is), _) => format!("write `{as_it_is}({x}, {w})`"),
        _ => return None,
    };
    Some(format!("{way}, or declare `{w}` with the shape [{columns}, {rows}]"))
}

fn same_extent(first: &Dim, second: &Dim) -> Option<String> {
    match (first, second) {
        (Dim::Named(a), Dim::Named(b)) => Some(format!(
            "different names are different dimensions; if they are the same, write `{a}` for `{b}` in the declarations"
        )),
        (Dim::Named(name), Dim::Size(size)) | (Dim::Size(size), Dim::Named(name)) => {
            Some(format!("if `{name}` is always {size}, write `{size}` in its declaration"))
        }
        _ => None,
    }
}

fn broadcast_help(first: &Dim, second: &Dim) -> String {
    let rule = "extents are compared from the last one on, and must be equal, or one of them 1";
    match same_extent(first, second) {
        Some(same) => format!("{rule}; {same}"),
        None => rule.to_owned(),
    }
}
