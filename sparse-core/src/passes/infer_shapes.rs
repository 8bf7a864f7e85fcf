//! Shapes of all values, by the operators' shape rules.

use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{Graph, Kind, Value, ValueId};
use crate::shapes::{self, Dim, ShapeError, show};
use crate::storage::Storage;

/// Infers the shape of every operator's result and checks declared and annotated ones.
pub fn infer_shapes(graph: &mut Graph) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for id in graph.ids() {
        if let Err(diagnostic) = check_declaration(graph, id) {
            diagnostics.push(diagnostic);
            graph.values[id.0].broken = true;
        }
        if graph.apply_of(id).is_some()
            && let Err(diagnostic) = infer_value(graph, id)
        {
            graph.values[id.0].broken = true;
            diagnostics.extend(diagnostic);
        }
    }
    check_losses(graph, &mut diagnostics);
    if diagnostics.is_empty() {
        check_extents(graph, &mut diagnostics);
    }
    diagnostics
}

/// The shape of one operator's result. `Err(None)` for a follower of a value that already has an error.
pub(super) fn infer_value(graph: &mut Graph, id: ValueId) -> Result<(), Option<Diagnostic>> {
    let Kind::Apply(apply) = graph.values[id.0].kind.clone() else {
        return Ok(());
    };
    if apply.operands.iter().any(|operand| graph.value(*operand).broken) {
        return Err(None);
    }
    let operands: Vec<_> = apply.operands.iter().map(|operand| graph.shape(*operand)).collect();
    let mut unify = std::mem::take(&mut graph.unify);
    let inferred = shapes::infer(apply.operator, &apply.attributes, &operands, &mut unify);
    graph.unify = unify;
    let place = graph.value(id).place;
    let shape = inferred.map_err(|error| {
        let words: Vec<String> =
            apply.operands.iter().map(|operand| graph.describe(*operand)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let message = format!("`{}`: {}", apply.operator.name, error.describe(&words));
        Some(match &error {
            ShapeError::Rank { .. } => Diagnostic::new(Code::WrongRank, place, message).help(
                format!("`{}` takes the shapes {}", apply.operator.name, apply.operator.shape),
            ),
            ShapeError::Mismatch { first, second } => {
                let diagnostic = Diagnostic::new(Code::ShapeMismatch, place, message);
                mismatch_help(diagnostic, &first.2, &second.2)
            }
            ShapeError::Attribute { .. } => Diagnostic::new(Code::BadAttribute, place, message),
            ShapeError::Axis { found, .. } => {
                Diagnostic::new(Code::BadAxis, place, message).help(format!(
                    "axes are 0 to {}, or negative from the end",
                    found.len().saturating_sub(1)
                ))
            }
        })
    })?;
    if let Some(annotation) = graph.values[id.0].annotation.clone() {
        let fits = annotation.shape.len() == shape.len()
            && annotation.shape.iter().zip(&shape).all(|(a, b)| graph.unify.unify(a, b));
        if !fits {
            let message = format!(
                "`{}` is annotated {}, but its shape is {}",
                graph.label(id),
                show(&graph.unify.resolve_all(&annotation.shape)),
                show(&shape)
            );
            let help = format!("write `{}{}`", annotation.storage, show(&shape));
            let code = Code::AnnotatedShape;
            return Err(Some(Diagnostic::new(code, annotation.place, message).help(help)));
        }
    }
    graph.values[id.0].shape = Some(shape);
    Ok(())
}

fn mismatch_help(diagnostic: Diagnostic, first: &Dim, second: &Dim) -> Diagnostic {
    match (first, second) {
        (Dim::Named(a), Dim::Named(b)) => diagnostic.help(format!(
            "different names are different dimensions; if they are the same, write `{a}` for `{b}` in the declarations"
        )),
        (Dim::Named(name), Dim::Size(size)) | (Dim::Size(size), Dim::Named(name)) => diagnostic
            .help(format!("if `{name}` is always {size}, write `{size}` in its declaration")),
        _ => diagnostic,
    }
}

fn check_declaration(graph: &Graph, id: ValueId) -> Result<(), Diagnostic> {
    let value = graph.value(id);
    let (storage, shape, place) = match &value.annotation {
        Some(annotation) => (Some(annotation.storage), Some(&annotation.shape), annotation.place),
        None if is_declared(value) => (value.storage, value.shape.as_ref(), value.place),
        None => return Ok(()),
    };
    let rank = shape.map_or(0, Vec::len);
    let shape = show(&graph.unify.resolve_all(shape.map_or(&[][..], Vec::as_slice)));
    let error = |code, message: String| Err(Diagnostic::new(code, place, message));
    match (&value.kind, storage) {
        (Kind::Parameter { .. }, Some(Storage::Csr)) => {
            error(Code::CsrParameter, format!("parameter `{}` is declared `csr`", graph.label(id)))
                .map_err(|diagnostic| {
                    diagnostic
                        .help(format!("write `row_sparse{shape}`: batches read and write its rows"))
                })
        }
        (_, Some(Storage::Csr)) if rank != 2 => error(
            Code::StorageRank,
            format!("`{}` is `csr` with shape {shape}: csr has rank 2", graph.label(id)),
        )
        .map_err(|diagnostic| diagnostic.help("write `csr[rows, columns]`")),
        (_, Some(Storage::RowSparse)) if rank == 0 => error(
            Code::StorageRank,
            format!(
                "`{}` is `row_sparse` without a dimension: row_sparse has rank 1 or more",
                graph.label(id)
            ),
        ),
        _ => Ok(()),
    }
}

fn is_declared(value: &Value) -> bool {
    !matches!(value.kind, Kind::Apply(_) | Kind::Constant(_))
}

fn check_losses(graph: &Graph, diagnostics: &mut Vec<Diagnostic>) {
    for loss in &graph.losses {
        let value = graph.value(*loss);
        let shape = graph.shape(*loss);
        if !value.broken && !shape.is_empty() {
            let name = graph.describe(*loss);
            diagnostics.push(
                Diagnostic::new(
                    Code::LossNotScalar,
                    value.place,
                    format!("the loss `{name}` has shape {}, but must be one number", show(&shape)),
                )
                .help(format!("write `loss mean({name});` or `loss sum({name});`")),
            );
        }
    }
}

/// Every declared extent must be known in the end.
fn check_extents(graph: &Graph, diagnostics: &mut Vec<Diagnostic>) {
    for id in graph.ids() {
        let shape = graph.shape(id);
        if is_declared(graph.value(id)) && shape.iter().any(|dim| matches!(dim, Dim::Unknown(_))) {
            let message = format!(
                "the shape {} of `{}` has an extent that nothing determines",
                show(&shape),
                graph.label(id)
            );
            diagnostics.push(
                Diagnostic::new(Code::UnknownExtent, graph.value(id).place, message)
                    .help("write a name or a number for `_`"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{parse, print};

    fn run(text: &str) -> (String, Vec<String>) {
        let mut graph = parse(text).unwrap();
        let diagnostics = infer_shapes(&mut graph).iter().map(Diagnostic::text).collect();
        (print(&graph), diagnostics)
    }

    #[test]
    fn linear_regression() {
        let (printed, diagnostics) = run("\
model M f32
x = input csr f32 [n, d]
y = label dense f32 [n, 1]
w = param row_sparse f32 [_, 1] \"Zeros\"
b = param dense f32 [1] \"Zeros\"
s = dot(x, w)
pred = add(s, b)
l = squared_error(pred, y)
loss l");
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert!(printed.contains("w = param row_sparse f32 [d, 1]"), "{printed}");
        assert!(printed.contains("pred = add(s, b): _ [n, 1]\nl = squared_error(pred, y): _ []"));
    }

    #[test]
    fn independent_errors_are_all_reported_and_followers_are_not() {
        let (_, diagnostics) = run("\
model M f32
x = input csr f32 [n, d]
w = param row_sparse f32 [e, 1] \"Zeros\"
v = param dense f32 [d] \"Zeros\"
s = dot(x, w)
t = tanh(s)
u = dot(x, v)
loss t");
        assert_eq!(diagnostics.len(), 2, "{diagnostics:?}");
        assert!(
            diagnostics[0].starts_with(
                "[NNZ0201] `dot`: `d` (dimension 1 of `x`) and `e` (dimension 0 of `w`)"
            )
        );
        assert!(diagnostics[1].starts_with("[NNZ0202] `dot`: `v` has shape [d]"));
    }

    #[test]
    fn a_loss_is_one_number() {
        let (_, diagnostics) = run("model M f32\nx = input dense f32 [n, 2]\nloss x");
        assert!(diagnostics[0].starts_with("[NNZ0404] the loss `x` has shape [n, 2]"));
    }
}
