//! Shapes of all values, by the operators' shape rules.

use super::annotations;
use super::misfit::misfit;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{Graph, Kind, Value, ValueId};
use crate::operators::{self, BinaryFamily};
use crate::shape_rules;
use crate::shapes::{Dim, show};
use crate::storage::Storage;

/// Infers the shape of every operator's result and checks declared and annotated ones.
pub fn infer_shapes(graph: &mut Graph) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for id in graph.ids() {
        if let Err(diagnostic) = check_declaration(graph, id).and_then(|()| check_size(graph, id)) {
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
    annotations::check_claimed_shapes(graph, &mut diagnostics);
    check_losses(graph, &mut diagnostics);
    check_weighted_losses(graph, &mut diagnostics);
    if diagnostics.is_empty() {
        check_extents(graph, &mut diagnostics);
    }
    diagnostics
}

/// The shape of one operator's result. `Err(None)` for a follower of a value that already has an
/// error.
pub(super) fn infer_value(graph: &mut Graph, id: ValueId) -> Result<(), Option<Diagnostic>> {
    let Kind::Apply(apply) = graph.values[id.0].kind.clone() else {
        return Ok(());
    };
    if apply.operands.iter().any(|operand| graph.value(*operand).broken) {
        return Err(None);
    }
    let operands: Vec<_> = apply.operands.iter().map(|operand| graph.shape(*operand)).collect();
    let mut unify = std::mem::take(&mut graph.unify);
    let inferred = shape_rules::infer(apply.operator, &apply.attributes, &operands, &mut unify);
    let settled = shape_rules::settled(apply.operator, &apply.attributes, &operands, &mut unify);
    graph.unify = unify;
    let place = graph.value(id).place;
    graph.keep_assumptions(apply.operator.name, place);
    let shape = inferred.map_err(|error| Some(misfit(graph, &apply, place, &error)))?;
    if let Some(annotation) = graph.values[id.0].annotation.clone() {
        let name = graph.label(id);
        annotations::check_shape(graph, &name, &shape, &annotation).map_err(Some)?;
    }
    let value = &mut graph.values[id.0];
    value.shape = Some(shape);
    if let (Kind::Apply(apply), Some((name, attribute))) = (&mut value.kind, settled) {
        apply.attributes.set(name, attribute);
    }
    Ok(())
}

fn check_declaration(graph: &Graph, id: ValueId) -> Result<(), Diagnostic> {
    let value = graph.value(id);
    let name = graph.label(id);
    if let Some(annotation) = &value.annotation {
        return annotations::check_rank(graph, &name, annotation.storage, &annotation.shape)
            .map_err(|error| Diagnostic { place: annotation.place, ..error });
    }
    let (true, Some(storage), Some(shape)) = (is_declared(value), value.storage, &value.shape)
    else {
        return Ok(());
    };
    if matches!(value.kind, Kind::Parameter { .. }) && storage == Storage::Csr {
        let message = format!("parameter `{name}` is declared `csr`");
        let shape = show(&graph.unify.resolve_all(shape));
        let help = format!("write `row_sparse{shape}`: batches read and write its rows");
        return Err(Diagnostic::new(Code::CsrParameter, value.place, message).help(help));
    }
    annotations::check_rank(graph, &name, storage, shape)
        .map_err(|error| Diagnostic { place: value.place, ..error })
}

/// What has more bytes than memory can have.
fn check_size(graph: &Graph, id: ValueId) -> Result<(), Diagnostic> {
    let value = graph.value(id);
    let (true, Some(shape)) = (is_declared(value), &value.shape) else { return Ok(()) };
    let bytes = shape.iter().try_fold(value.element.bytes(), |bytes, dim| match dim {
        Dim::Size(size) => bytes.checked_mul(*size),
        _ => Some(bytes),
    });
    // A csr of any extents may store little; parameters hold all of their rows.
    let stored =
        value.storage == Some(Storage::Dense) || matches!(value.kind, Kind::Parameter { .. });
    if !stored || bytes.is_some_and(|bytes| bytes <= i64::MAX as u64) {
        return Ok(());
    }
    let message = format!(
        "`{}` has the shape {}: more than 2⁶³ bytes, which no memory addresses",
        graph.label(id),
        show(shape)
    );
    Err(Diagnostic::new(Code::TooLarge, value.place, message)
        .help("make an extent smaller: ids can be hashed into fewer rows"))
}

fn is_declared(value: &Value) -> bool {
    !matches!(value.kind, Kind::Apply(_) | Kind::Constant(_) | Kind::Named(_))
}

fn check_losses(graph: &Graph, diagnostics: &mut Vec<Diagnostic>) {
    for (index, loss) in graph.losses.iter().enumerate() {
        let value = graph.value(*loss);
        let shape = graph.shape(*loss);
        if !value.broken && !shape.is_empty() {
            let name = graph.describe(*loss);
            let help = match weighted_loss(graph, *loss) {
                Some((_, weighted)) => format!("write `loss {weighted};`"),
                None => format!("write `loss mean({name});` or `loss sum({name});`"),
            };
            diagnostics.push(
                Diagnostic::new(
                    Code::LossNotScalar,
                    graph.loss_places.get(index).copied().unwrap_or(value.place),
                    format!("the loss `{name}` has shape {}, but must be one number", show(&shape)),
                )
                .help(help),
            );
        }
    }
}

/// A loss times an array that was meant to weight its samples: a warning where the product is
/// computed with, since a product that is the loss itself is an error.
fn check_weighted_losses(graph: &Graph, diagnostics: &mut Vec<Diagnostic>) {
    for id in graph.ids().filter(|id| !graph.losses.contains(id) && !graph.value(*id).broken) {
        let Some(((loss, weight), weighted)) = weighted_loss(graph, id) else { continue };
        let (loss, weight) = (graph.describe(loss), graph.describe(weight));
        let message = format!(
            "`{loss}` is one number, the mean over the samples: `{weight}` multiplies that mean, and weights no sample"
        );
        diagnostics.push(
            Diagnostic::new(Code::WeightsMean, graph.value(id).place, message)
                .help(format!("write `{weighted}`")),
        );
    }
}

/// Of a product of a loss and an array with numbers of samples: the loss and the array, and the
/// call that weights the samples.
fn weighted_loss(graph: &Graph, id: ValueId) -> Option<((ValueId, ValueId), String)> {
    let product = graph.apply_of(id)?;
    let &[lhs, rhs] = &product.operands[..] else { return None };
    if !matches!(product.operator.kind, operators::Kind::Binary(BinaryFamily::Intersection, _)) {
        return None;
    }
    let of = |loss: ValueId, weight: ValueId| {
        let apply = graph.apply_of(loss)?;
        let is_loss = matches!(apply.operator.kind, operators::Kind::Loss { .. });
        let weights_samples = apply.operands.len() < apply.operator.operands.len();
        let score = graph.shape(*apply.operands.first()?);
        let by_sample = graph.shape(weight).first() == score.first() && !score.is_empty();
        if !is_loss || !weights_samples || !by_sample {
            return None;
        }
        let operands: Vec<String> = apply.operands.iter().map(|id| graph.describe(*id)).collect();
        let weighted = format!(
            "{}({}, weight = {})",
            apply.operator.name,
            operands.join(", "),
            graph.describe(weight)
        );
        Some(((loss, weight), weighted))
    };
    of(lhs, rhs).or_else(|| of(rhs, lhs))
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
v = param dense f32 [d, 1, 1] \"Zeros\"
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
        assert!(diagnostics[1].starts_with("[NNZ0202] `dot`: `v` has shape [d, 1, 1]"));
    }

    #[test]
    fn axes_that_are_gone_are_those_known() {
        let (printed, diagnostics) = run("\
model M f32
x = input dense f32 [n, 1, 3]
a = squeeze(x)
b = squeeze(a)");
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        // A batch of one row is one.
        assert!(printed.contains("a = squeeze(x, axis = [1]): _ [n, 3]"), "{printed}");
        assert!(printed.contains("b = squeeze(a, axis = []): _ [n, 3]"), "{printed}");
    }

    #[test]
    fn a_loss_is_one_number() {
        let (_, diagnostics) = run("model M f32\nx = input dense f32 [n, 2]\nloss x");
        assert!(diagnostics[0].starts_with("[NNZ0404] the loss `x` has shape [n, 2]"));
    }
}
