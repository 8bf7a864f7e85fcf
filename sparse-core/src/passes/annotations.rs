//! Type annotations: `let y: csr[n, d] = …`, `output y: csr[n, d]`.
//!
//! It is checked, and it decides between the results that a rule offers. Where the model allows a
//! fallback, a dense value that is annotated sparse is converted back: the value of a `let` for all
//! who read it, that of an output for the output alone.

use super::conversions::push_conversion;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{Annotation, Fallback, Graph, Place, ValueId};
use crate::shapes::{Dim, show};
use crate::storage::Storage;
use std::collections::HashMap;

/// A storage type must have room for a shape. The place of an error is the caller's.
pub(super) fn check_rank(
    graph: &Graph,
    name: &str,
    storage: Storage,
    shape: &[Dim],
) -> Result<(), Diagnostic> {
    let error = |message| Diagnostic::new(Code::StorageRank, Place::default(), message);
    let written = show(&graph.unify.resolve_all(shape));
    match (storage, shape.len()) {
        (Storage::Csr, rank) if rank != 2 => {
            Err(error(format!("`{name}` is `csr` with shape {written}: csr has rank 2"))
                .help("write `csr[rows, columns]`"))
        }
        (Storage::RowSparse, 0) => Err(error(format!(
            "`{name}` is `row_sparse` without a dimension: row_sparse has rank 1 or more"
        ))),
        _ => Ok(()),
    }
}

/// The shape of a value must be the one annotated; extents that are left open become known.
pub(super) fn check_shape(
    graph: &mut Graph,
    name: &str,
    shape: &[Dim],
    annotation: &Annotation,
) -> Result<(), Diagnostic> {
    let fits = annotation.shape.len() == shape.len()
        && annotation.shape.iter().zip(shape).all(|(a, b)| graph.unify.unify(a, b));
    graph.keep_assumptions(name, annotation.place);
    if fits {
        return Ok(());
    }
    let wanted = show(&graph.unify.resolve_all(&annotation.shape));
    let message = format!("`{name}` is annotated {wanted}, but its shape is {}", show(shape));
    let help = format!("write `{}{}`", annotation.storage, show(shape));
    Err(Diagnostic::new(Code::AnnotatedShape, annotation.place, message).help(help))
}

/// [`check_rank`] and [`check_shape`] for names whose values are not made for them.
pub(super) fn check_claimed_shapes(graph: &mut Graph, diagnostics: &mut Vec<Diagnostic>) {
    for claim in graph.claims.clone() {
        if graph.value(claim.value).broken {
            continue;
        }
        let (name, annotation) = (&claim.name, &claim.annotation);
        let shape = graph.shape(claim.value);
        let checked = check_rank(graph, name, annotation.storage, &annotation.shape)
            .map_err(|error| Diagnostic { place: annotation.place, ..error })
            .and_then(|()| check_shape(graph, name, &shape, annotation));
        diagnostics.extend(checked.err());
    }
}

/// A value that was just appended meets its annotation, or is converted, or is marked broken. Gives
/// the value that has the name.
pub(super) fn meet(
    graph: &mut Graph,
    id: ValueId,
    annotation: &Annotation,
    diagnostics: &mut Vec<Diagnostic>,
) -> ValueId {
    let name = graph.label(id);
    match check_type(graph, id, &name, annotation, true) {
        Ok(None) => id,
        Ok(Some(storage)) => {
            warn(graph, &name, annotation, diagnostics);
            let value = &mut graph.values[id.0];
            let (name, annotation, place) =
                (value.name.take(), value.annotation.take(), value.place);
            let converted = push_conversion(graph, id, storage, place, true);
            let value = &mut graph.values[converted.0];
            (value.name, value.annotation) = (name, annotation);
            converted
        }
        Err(error) => {
            diagnostics.push(error);
            graph.values[id.0].broken = true;
            id
        }
    }
}

/// The values that other names are annotated for, and the storage these agree on: where a rule
/// offers it, the value is made so.
pub(super) fn claimed(graph: &Graph) -> HashMap<ValueId, Storage> {
    let mut asked: HashMap<ValueId, Option<Storage>> = HashMap::new();
    for claim in &graph.claims {
        let wanted = claim.annotation.storage;
        let known = asked.entry(claim.value).or_insert(Some(wanted));
        *known = known.filter(|known| *known == wanted);
    }
    let one = |(id, storage): (ValueId, Option<Storage>)| Some((id, storage?));
    let mut asked: HashMap<ValueId, Storage> = asked.into_iter().filter_map(one).collect();
    // An annotation of its own comes first.
    asked.retain(|id, _| graph.value(*id).annotation.is_none());
    asked
}

/// As [`meet`], for names whose values are not made for them: only an output is converted.
pub(super) fn meet_claims(graph: &mut Graph, diagnostics: &mut Vec<Diagnostic>) {
    for claim in graph.claims.clone() {
        if graph.value(claim.value).broken {
            continue;
        }
        let (name, annotation) = (&claim.name, &claim.annotation);
        match check_type(graph, claim.value, name, annotation, claim.output.is_some()) {
            Ok(None) => {}
            Ok(Some(storage)) => {
                warn(graph, name, annotation, diagnostics);
                let converted =
                    push_conversion(graph, claim.value, storage, annotation.place, true);
                if let Some(output) = claim.output {
                    graph.outputs[output].value = converted;
                }
            }
            Err(error) => diagnostics.push(error),
        }
    }
}

/// Whether a value has the annotated types of elements and storage: nothing to do, the storage to
/// convert it to, or an error.
fn check_type(
    graph: &Graph,
    id: ValueId,
    name: &str,
    annotation: &Annotation,
    convertible: bool,
) -> Result<Option<Storage>, Diagnostic> {
    let (value, wanted, found) = (graph.value(id), annotation.storage, graph.storage(id));
    if let Some(element) = annotation.element.filter(|element| *element != value.element) {
        let message =
            format!("`{name}` is annotated `{element}`, but its elements are `{}`", value.element);
        let help = format!("write `{}` here, or leave the element type out", value.element);
        return Err(Diagnostic::new(Code::AnnotatedElement, annotation.place, message).help(help));
    }
    let allowed = graph.fallback != Fallback::Deny && found == Storage::Dense;
    if found == wanted {
        return Ok(None);
    }
    if convertible && allowed && !value.element.is_id() {
        return Ok(Some(wanted));
    }
    let message = format!("`{name}` is annotated `{wanted}`, but its storage is `{found}`");
    let help = if value.element.is_id() {
        format!("write `{found}` here: ids are dense")
    } else {
        format!("write `{found}` here, or convert with `{wanted}(…)`")
    };
    Err(Diagnostic::new(Code::AnnotatedStorage, annotation.place, message).help(help))
}

/// Says that a value is converted, where the model asks for that.
fn warn(graph: &Graph, name: &str, annotation: &Annotation, diagnostics: &mut Vec<Diagnostic>) {
    if graph.fallback == Fallback::Warn {
        let wanted = annotation.storage;
        let message = format!(
            "fallback: `{name}` is annotated `{wanted}`, but its storage is `dense`: it is converted"
        );
        diagnostics.push(Diagnostic::new(Code::ConvertedBack, annotation.place, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Claim, parse, print};
    use crate::passes::{infer_shapes, infer_storage};

    const OPERANDS: &str =
        "x = input csr f32 [n, d]\nr = input row_sparse f32 [n, d]\nu = input dense f32 [n, d]\n";

    fn csr(rank: usize) -> Annotation {
        let shape = ["n", "d", "d"][..rank].iter().map(|name| Dim::Named((*name).into())).collect();
        Annotation { storage: Storage::Csr, shape, element: None, place: Place(99) }
    }

    /// A graph of a value `o` that others read, annotated by `annotate`.
    fn run(fallback: &str, call: &str, annotate: impl FnOnce(&mut Graph)) -> (Graph, Vec<String>) {
        let text = format!(
            "model M f32 {fallback}\n{OPERANDS}o = {call}\np = tanh(o)\noutput o = o\noutput p = p"
        );
        let mut graph = parse(&text).unwrap();
        annotate(&mut graph);
        let mut said = infer_shapes(&mut graph);
        if said.is_empty() {
            said = infer_storage(&mut graph);
        }
        (graph, said.iter().map(Diagnostic::text).collect())
    }

    /// `let o: csr[…] = call`.
    fn annotated(fallback: &str, call: &str, rank: usize) -> (Graph, Vec<String>) {
        run(fallback, call, |graph| {
            let o = graph.values.iter_mut().find(|value| value.name.as_deref() == Some("o"));
            o.unwrap().annotation = Some(csr(rank));
        })
    }

    /// `let q: csr[…] = o`, or `output o: csr[…]`.
    fn claimed(
        fallback: &str,
        call: &str,
        rank: usize,
        output: Option<usize>,
    ) -> (Graph, Vec<String>) {
        run(fallback, call, |graph| {
            let name = if output.is_some() { "o" } else { "q" }.to_owned();
            let value = graph.outputs[0].value;
            graph.claims.push(Claim { name, value, annotation: csr(rank), output });
        })
    }

    #[test]
    fn a_value_annotated_sparse_is_converted_back() {
        for (call, lines) in [
            ("exp(u)", "%3 = exp(u): dense [n, d]\no = csr(%3): csr [n, d]\n"),
            (
                "log(x)",
                "%3 = dense(x): dense [n, d]\n%4 = log(%3): dense [n, d]\no = csr(%4): csr [n, d]\n",
            ),
        ] {
            let (graph, said) = annotated("fallback = allow", call, 2);
            assert_eq!(said, [""; 0]);
            let printed = print(&graph);
            assert!(printed.contains(&format!("{lines}p = tanh(o): csr [n, d]\n")), "{printed}");
            assert!(printed.ends_with("output o = o\noutput p = p\n"), "{printed}");
            // The plan and the log show every conversion as one that the source does not have.
            let inserted = graph.values.iter().filter(|value| value.inserted).count();
            assert_eq!(inserted, printed.matches("= dense(").count() + 1);
        }
        let (_, warned) = annotated("fallback = warn", "log(x)", 2);
        assert_eq!(
            warned,
            [
                "[NNZ0305] fallback: `log` of a `csr` value would be dense: n × d f32, 4·n·d bytes, instead of 8·nnz(x) bytes",
                "[NNZ0311] fallback: `o` is annotated `csr`, but its storage is `dense`: it is converted",
            ]
        );
    }

    #[test]
    fn an_output_annotated_sparse_is_converted_alone() {
        let (graph, said) = claimed("fallback = allow", "exp(u)", 2, Some(0));
        assert_eq!(said, [""; 0]);
        assert!(
            print(&graph).ends_with(
                "o = exp(u): dense [n, d]\np = tanh(o): dense [n, d]\n%5 = csr(o): csr [n, d]\noutput o = %5\noutput p = p\n"
            ),
            "{}",
            print(&graph)
        );
        assert!(graph.values[5].inserted);
        let (_, warned) = claimed("fallback = warn", "exp(u)", 2, Some(0));
        assert_eq!(
            warned,
            [
                "[NNZ0311] fallback: `o` is annotated `csr`, but its storage is `dense`: it is converted"
            ]
        );
        let (_, refused) = claimed("", "exp(u)", 2, Some(0));
        assert_eq!(refused, [NOT_CSR]);
        let (graph, said) = claimed("", "tanh(x)", 2, Some(0));
        assert!(said.is_empty() && print(&graph).ends_with("output o = o\noutput p = p\n"));
    }

    const NOT_CSR: &str = "[NNZ0302] `o` is annotated `csr`, but its storage is `dense`\n\
                           help: write `dense` here, or convert with `csr(…)`";

    #[test]
    fn a_second_name_is_checked_and_converts_nothing() {
        let (_, refused) = claimed("fallback = allow", "exp(u)", 2, None);
        assert_eq!(refused, [NOT_CSR.replace("`o`", "`q`")]);
        let (_, refused) = claimed("", "tanh(x)", 1, None);
        assert!(refused[0].starts_with("[NNZ0204] `q` is `csr` with shape [n]"), "{refused:?}");
        let (_, refused) = run("", "tanh(x)", |graph| {
            let annotation =
                Annotation { shape: vec![Dim::Named("n".into()), Dim::Size(3)], ..csr(2) };
            let value = graph.outputs[0].value;
            graph.claims.push(Claim { name: "q".into(), value, annotation, output: None });
        });
        assert_eq!(
            refused,
            ["[NNZ0203] `q` is annotated [n, 3], but its shape is [n, d]\nhelp: write `csr[n, d]`"]
        );
    }

    #[test]
    fn an_annotation_that_does_not_hold_is_refused() {
        let (_, said) = annotated("", "exp(u)", 2);
        assert_eq!(said, [NOT_CSR]);
        // The operator's own refusal comes first, and nothing follows from it.
        let (_, said) = annotated("", "log(x)", 2);
        assert!(said.len() == 1 && said[0].starts_with("[NNZ0301] `log` of a `csr`"), "{said:?}");
        let (_, said) = annotated("fallback = allow", "negative(r)", 2);
        assert_eq!(said, [NOT_CSR.replace("dense", "row_sparse")]);
        let (_, said) = annotated("fallback = allow", "exp(u)", 3);
        assert_eq!(
            said[0],
            "[NNZ0204] `o` is `csr` with shape [n, d, d]: csr has rank 2\nhelp: write `csr[rows, columns]`"
        );
    }
}
