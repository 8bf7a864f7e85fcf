//! Storage types of all values, by the operators' storage rules.
//!
//! A combination that no rule covers is an error at the operator, unless the model allows a
//! [fallback](super::fallback).

use super::choose_rule::{NoRule, about, choose, covers};
use super::conversions::push_conversion;
use super::{annotations, fallback};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{Apply, AttributeValue, Graph, Kind, Output, Place, Value, ValueId};
use crate::operators::{self, AtZero, Pattern};
use crate::storage::{ElementType, Storage};

/// Infers the storage of every operator's result, choosing a rule for each.
pub fn infer_storage(graph: &mut Graph) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let claimed = annotations::claimed(graph);
    let values = std::mem::take(&mut graph.values);
    // The list is rebuilt, because a fallback inserts values.
    let mut renamed: Vec<ValueId> = Vec::with_capacity(values.len());
    for (index, mut value) in values.into_iter().enumerate() {
        if let Kind::Apply(apply) = &mut value.kind {
            for operand in &mut apply.operands {
                *operand = renamed[operand.0];
            }
            if let Some(storage) = claimed.get(&ValueId(index)) {
                request(graph, apply, *storage);
            }
        }
        let id = match value.kind {
            Kind::Apply(_) => {
                diagnostics.extend(nothing_to_convert(graph, &value));
                push_inferred(graph, value, &mut diagnostics)
            }
            _ => graph.push(value),
        };
        renamed.push(id);
    }
    for loss in &mut graph.losses {
        *loss = renamed[loss.0];
    }
    for Output { value, .. } in &mut graph.outputs {
        *value = renamed[value.0];
    }
    for update in &mut graph.updates {
        update.state = renamed[update.state.0];
        update.value = renamed[update.value.0];
    }
    for claim in &mut graph.claims {
        claim.value = renamed[claim.value.0];
    }
    annotations::meet_claims(graph, &mut diagnostics);
    fallback::propose_from_the_right(graph, &mut diagnostics);
    diagnostics
}

/// A conversion that the source writes, of a value that is stored so already.
fn nothing_to_convert(graph: &Graph, value: &Value) -> Option<Diagnostic> {
    let Kind::Apply(Apply { operator, operands, .. }) = &value.kind else { return None };
    let to = operator.converts_to?;
    let operand = *operands.first()?;
    // The ones of a pattern are written out.
    let changes = graph.storage(operand) != to || graph.value(operand).element == ElementType::Unit;
    let is_number = graph.is_number(operand);
    if value.broken || graph.value(operand).broken || changes || is_number {
        return None;
    }
    let name = graph.describe(operand);
    let message = format!("`{to}({name})` changes nothing: `{name}` is `{to}` already");
    Some(
        Diagnostic::new(Code::NothingToConvert, value.place, message)
            .help(format!("write `{name}`")),
    )
}

/// Appends an application whose operands and shape are inferred, choosing its rule. In spite of an
/// error the value is appended, marked broken.
pub(super) fn push_inferred(
    graph: &mut Graph,
    mut value: Value,
    diagnostics: &mut Vec<Diagnostic>,
) -> ValueId {
    let Kind::Apply(mut apply) = value.kind.clone() else {
        return graph.push(value);
    };
    if value.broken || apply.operands.iter().any(|operand| graph.value(*operand).broken) {
        value.broken = true;
        return graph.push(value);
    }
    let chosen = match choose(graph, &apply, &value) {
        Err(NoRule::Covers) => fallback::fall_back(graph, &mut apply, &value, diagnostics),
        Err(NoRule::Error(error)) => {
            diagnostics.push(error);
            None
        }
        Ok(chosen) => Some(chosen),
    };
    match chosen {
        Some((rule, storage)) => {
            keep_zero_condition(graph, &apply, rule, value.place);
            write_out_units(graph, &mut apply, rule, value.place);
            apply.rule = Some(rule);
            value.storage = Some(storage);
        }
        None => value.broken = true,
    }
    value.element = result_element(graph, &apply);
    value.kind = Kind::Apply(apply);
    let (annotation, broken) = (value.annotation.clone(), value.broken);
    let id = graph.push(value);
    match annotation {
        Some(annotation) if !broken => annotations::meet(graph, id, &annotation, diagnostics),
        _ => id,
    }
}

/// Where a rule has no kernel for patterns, the ones of a `csr<unit>` are written out first: the
/// conversion is an operator like any other, and the plan shows what it costs.
fn write_out_units(graph: &mut Graph, apply: &mut Apply, rule: usize, place: Place) {
    let signature = apply.operator.storage[rule].signature();
    if signature.of_units {
        return;
    }
    for (operand, pattern) in apply.operands.iter_mut().zip(&signature.operands) {
        let is_read = matches!(pattern, Pattern::Array(..));
        if is_read && graph.value(*operand).element == ElementType::Unit {
            *operand = push_conversion(graph, *operand, Storage::Csr, place, false);
        }
    }
}

/// Asks for the result as `storage`, where the rule that covers the operands offers it besides
/// another.
fn request(graph: &Graph, apply: &mut Apply, storage: Storage) {
    let offers = |rule: &operators::Rule| {
        let signature = rule.signature();
        signature.result != storage
            && signature.results().any(|result| result == storage)
            && covers(graph, apply, &signature)
    };
    if apply.attributes.storage("out").is_none()
        && let Some(out) = apply.operator.attribute("out")
        && apply.operator.storage.iter().any(offers)
    {
        apply.attributes.set(out.name, AttributeValue::Storage(storage));
    }
}

/// What a rule that keeps zeros assumes of constants of Rust, for whoever sees their values.
fn keep_zero_condition(graph: &mut Graph, apply: &Apply, rule: usize, place: Place) {
    let signature = apply.operator.storage[rule].signature();
    if signature.condition != Some(&operators::Condition::ZERO_STAYS) {
        return;
    }
    let AtZero::If(condition) = about(graph, apply, |given| given.at_zero()) else { return };
    let (name, result) = (apply.operator.name, signature.result);
    let dense: Vec<String> = apply
        .operands
        .iter()
        .map(|id| {
            if graph.is_number(*id) {
                graph.label(*id)
            } else {
                format!("dense({})", graph.describe(*id))
            }
        })
        .chain(apply.attributes.iter().map(|(name, value)| format!("{name} = {value}")))
        .collect();
    let text = format!(
        "`{name}` keeps `{result}` only where it is 0 at 0, which is so where `{}`; write `{name}({})` to accept the cost",
        condition.bare(),
        dense.join(", ")
    );
    graph.keep_condition(condition, text, place);
}

/// All results are numbers of the model's type, but for positions and counts.
fn result_element(graph: &Graph, apply: &Apply) -> ElementType {
    let rule = apply.rule.and_then(|rule| apply.operator.storage.get(rule));
    if rule.is_some_and(|rule| rule.signature().gives_ids) {
        ElementType::U64
    } else {
        graph.element()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Annotation, Claim, parse, print};
    use crate::passes::infer_shapes;
    use crate::shapes::Dim;

    fn run(text: &str) -> (String, Vec<String>) {
        let mut graph = parse(text).unwrap();
        let shapes = infer_shapes(&mut graph);
        assert!(shapes.is_empty(), "{shapes:?}");
        let diagnostics = infer_storage(&mut graph).iter().map(Diagnostic::text).collect();
        (print(&graph), diagnostics)
    }

    const THREE: &str =
        "a = input dense f32 [n, d]\nb = input csr f32 [n, d]\nc = input row_sparse f32 [n, d]\n";

    #[test]
    fn the_tutorial_infers_its_three_storages() {
        let (printed, diagnostics) =
            run(&format!("model M f32\n{THREE}d = add(a, a)\ne = negative(b)\nf = add(c, c)\n"));
        assert!(diagnostics.is_empty());
        assert!(printed.contains("d = add(a, a): dense [n, d]"));
        assert!(printed.contains("e = negative(b): csr [n, d]"));
        assert!(printed.contains("f = add(c, c): row_sparse [n, d]"));
    }

    /// Kernels for patterns read a `csr<unit>`; what has none reads one copy with ones, which is no
    /// conversion of a fallback.
    #[test]
    fn the_ones_of_a_pattern_are_written_out_where_no_kernel_reads_it() {
        let head = "model M f32\nx = input csr unit [n, d]\nw = param row_sparse f32 [d, 1] \"\"\n";
        let (printed, diagnostics) = run(&format!(
            "{head}s = dot(x, w)\nu = multiply(x, 2)\nv = add(x, x)\nc = count_stored(x)\nb = embedding_bag(x, w)\n"
        ));
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert_eq!(printed.matches("csr(x)").count(), 1, "{printed}");
        for line in [
            "s = dot(x, w): dense [n, 1]",
            "%4 = csr(x): csr [n, d]\nu = multiply(%4, 2): csr [n, d]",
            "v = add(%4, %4): csr [n, d]",
            "c = count_stored(x): dense []",
            "b = embedding_bag(x, w): dense [n, 1]",
        ] {
            assert!(printed.contains(line), "{line} in\n{printed}");
        }
        // Written by hand it is not a conversion that changes nothing, and a value of it may be
        // annotated.
        assert!(run(&format!("{head}u = csr(x)\nv = tanh(u)")).1.is_empty());
        let (_, refused) = run(&format!("{head}u = log(x)"));
        assert!(
            refused[0].starts_with(
                "[NNZ0301] `log` of a `csr` value would be dense: n × d f32, 4·n·d bytes, instead of 4·nnz(x) bytes"
            ),
            "{refused:?}"
        );
        let (printed, _) =
            run(&format!("{}u = log(x)", head.replace("f32\nx", "f32 fallback = allow\nx")));
        assert!(printed.contains("= dense(x): dense [n, d]"), "{printed}");
    }

    /// What is printed of the last value, and what is needed of constants.
    fn needed(call: &str) -> (String, Vec<String>) {
        let text = format!("model M f32\nx = input csr f32 [n, d]\n%1 = number d\n{call}\n");
        let mut graph = parse(&text).unwrap();
        assert!(infer_shapes(&mut graph).is_empty());
        let refused = infer_storage(&mut graph);
        let printed = print(&graph);
        let last = printed.lines().last().unwrap_or_default().to_owned();
        let last = refused.first().map_or(last, |refused| refused.message.clone());
        (last, graph.conditions.into_iter().map(|needed| needed.condition.bare()).collect())
    }

    #[test]
    fn l8_zeros_are_kept_where_constants_of_rust_say_so() {
        for (call, stored, conditions) in [
            ("y = clip(x, lower = LOW, upper = 2)", "csr", &["min(max(0, LOW), 2) == 0"][..]),
            ("y = clip(x, lower = LOW, upper = HIGH)", "csr", &["min(max(0, LOW), HIGH) == 0"]),
            ("y = multiply(x, %1)", "csr", &[]),
            ("y = divide(x, %1)", "csr", &[]),
            ("y = power(x, %1)", "csr", &[]),
            ("y = maximum(x, %1)", "would be dense", &[]),
            ("y = add(x, %1)", "would be dense", &[]),
        ] {
            let (found, needed) = needed(call);
            assert!(found.contains(stored) && needed == conditions, "{call}: {found} {needed:?}");
        }
    }

    #[test]
    fn densification_is_refused_with_its_cost_and_a_way_out() {
        let (_, diagnostics) =
            run(&format!("model M f32\n{THREE}u = log(b)\nv = add(b, c)\nw = tanh(v)"));
        assert_eq!(
            diagnostics,
            [
                "[NNZ0301] `log` of a `csr` value would be dense: n × d f32, 4·n·d bytes, instead of 8·nnz(b) bytes\n\
                 help: `log(0)` is `-inf`; write `log1p(b)` to stay sparse, or `log(dense(b))` to accept the cost",
                "[NNZ0301] `add` of `csr` and `row_sparse` has no kernel: `c` would be dense, n × d f32, 4·n·d bytes, instead of 4·d·rows(c) bytes\n\
                 help: write `b + dense(c)` to accept the cost, or `fallback = warn;` in the model",
            ]
        );
    }

    #[test]
    fn a_fallback_inserts_conversions_and_warns_where_told() {
        let (printed, diagnostics) =
            run(&format!("model M f32 fallback = warn\n{THREE}v = add(b, c)\noutput v = v"));
        assert_eq!(diagnostics.len(), 1);
        assert!(diagnostics[0].starts_with("[NNZ0305] fallback: `add` of `csr` and `row_sparse`"));
        assert!(printed.contains("%3 = dense(c): dense [n, d]\nv = add(b, %3)"), "{printed}");
        assert!(printed.contains("output v = v"));
        let (_, silent) =
            run(&format!("model M f32 fallback = allow\n{THREE}v = add(b, c)\noutput v = v"));
        assert!(silent.is_empty());
    }

    #[test]
    fn a_result_is_dense_on_request() {
        let text = "model M f32\nx = input csr f32 [n, d]\ng = input dense f32 [n, 2]\n";
        let (printed, _) = run(&format!("{text}u = dot(x, g, transpose_lhs = true)"));
        assert!(printed.contains("u = dot(x, g, transpose_lhs = true): row_sparse [d, 2]"));
        let (printed, _) = run(&format!("{text}u = dot(x, g, transpose_lhs = true, out = dense)"));
        assert!(printed.contains(": dense [d, 2]"));
        let (_, refused) = run(&format!("{text}u = dot(x, g, transpose_lhs = true, out = csr)"));
        assert!(refused[0].starts_with(
            "[NNZ0303] `dot` of `csr` transposed and `dense` cannot give its result as `csr`"
        ));
    }

    /// `let u: … = x'g`, `let u = x'g; output u: …`, and several claims.
    #[test]
    fn an_annotation_chooses_among_the_results_of_a_rule() {
        let text = "model M f32\nx = input csr f32 [n, d]\ng = input dense f32 [n, 2]\n\
                    u = dot(x, g, transpose_lhs = true)\nv = negative(u)\noutput u = u\noutput v = v";
        let annotation = |storage| Annotation {
            storage,
            shape: vec![Dim::Named("d".into()), Dim::Size(2)],
            element: None,
            place: Place(9),
        };
        let claim = |storage| Claim {
            name: "u".into(),
            value: ValueId(2),
            annotation: annotation(storage),
            output: Some(0),
        };
        let run = |annotated: Option<Storage>, claims: &[Storage]| {
            let mut graph = parse(text).unwrap();
            graph.values[2].annotation = annotated.map(annotation);
            graph.claims = claims.iter().copied().map(claim).collect();
            assert!(infer_shapes(&mut graph).is_empty());
            let said: Vec<_> = infer_storage(&mut graph).iter().map(Diagnostic::text).collect();
            (graph.storage(ValueId(2)), graph.storage(ValueId(3)), said)
        };
        use Storage::{Csr, Dense, RowSparse};
        for (annotated, claims, storage) in [
            (None, &[][..], RowSparse),
            (Some(Dense), &[], Dense),
            (None, &[Dense], Dense),
            (None, &[Dense, Dense], Dense),
            (None, &[RowSparse], RowSparse),
        ] {
            assert_eq!(run(annotated, claims), (storage, storage, vec![]));
        }
        // Who asks for both is told, and what no rule offers is not made.
        for (annotated, claims, refused) in [
            (None, &[Dense, RowSparse][..], "`u` is annotated `dense`"),
            (Some(RowSparse), &[Dense], "`u` is annotated `dense`"),
            (None, &[Csr], "`u` is annotated `csr`"),
        ] {
            let (storage, _, said) = run(annotated, claims);
            assert!(storage == RowSparse && said.len() == 1, "{said:?}");
            assert!(said[0].starts_with(&format!("[NNZ0302] {refused}")), "{said:?}");
        }
    }

    #[test]
    fn ids_are_not_numbers() {
        let (_, errors) = run(
            "model M f32\ns = input dense f32 [n, 3]\ny = label dense f32 [n]\nl = softmax_cross_entropy(s, y)\nloss l",
        );
        assert!(errors[0].starts_with("[NNZ0308] `softmax_cross_entropy` needs integer ids for its `label`, but `y` holds `f32`"));
        let (_, errors) = run("model M f32\ny = input dense u32 [n]\nu = tanh(y)");
        assert!(errors[0].starts_with("[NNZ0304] `tanh` computes with numbers"));
    }

    #[test]
    fn csr_has_two_dimensions_also_after_broadcasting() {
        let (_, errors) = run(
            "model M f32\nx = input csr f32 [n, d]\nz = input dense f32 [m, n, d]\nu = multiply(x, z)",
        );
        assert!(
            errors[0].starts_with("[NNZ0301] `multiply` of `csr` and `dense` would be dense"),
            "{errors:?}"
        );
    }
}
