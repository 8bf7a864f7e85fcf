//! Operators that no storage rule covers: a refusal that says what it would cost and what to write,
//! or, where the model allows a fallback, conversions.
//!
//! As few operands as possible pass through `dense`, an operator of the table like any other, and
//! the plan shows it: the other operands keep the kernels that read them sparse, and gradients that
//! sparse kernels give.

use super::bytes::{dense_bytes, stored_bytes};
use super::choose_rule::{choose, covers, operand_storages};
use super::conversions::push_conversion;
use crate::diagnostics::{Code, Diagnostic};
use crate::formula::Formula;
use crate::ir::{Apply, Fallback, Graph, Place, Value, ValueId};
use crate::operators::Signature;
use crate::shapes::size_formula;
use crate::storage::Storage;

/// Makes operands dense, where the model allows it and a rule covers the result, and gives that
/// rule; else says what is refused.
pub(super) fn fall_back(
    graph: &mut Graph,
    apply: &mut Apply,
    value: &Value,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(usize, Storage)> {
    let before = graph.values.len();
    let conversion = least_conversion(graph, apply, value);
    let converted = conversion.as_ref().map(|conversion| &conversion.operands[..]);
    let refusal = refusal(graph, apply, value, converted.unwrap_or_default());
    match (conversion, graph.fallback) {
        (None, _) | (_, Fallback::Deny) => {
            graph.values.truncate(before);
            diagnostics.push(refusal);
            None
        }
        (Some(conversion), fallback) => {
            if fallback == Fallback::Warn {
                let message = format!("fallback: {}", refusal.message);
                diagnostics.push(Diagnostic::new(Code::FallbackInserted, value.place, message));
            }
            *apply = conversion.apply;
            Some(conversion.chosen)
        }
    }
}

/// What to make dense so that a rule covers an application.
struct Conversion {
    /// The positions of the operands that are made dense.
    operands: Vec<usize>,
    /// The application of the operands so converted.
    apply: Apply,
    /// The rule and the storage of its result.
    chosen: (usize, Storage),
}

/// Appends the conversions of as few operands as possible, or nothing where none help. Of two
/// operands the one that saves less by being sparse is converted, a row_sparse one before a csr
/// one, and a later one before an earlier one: data comes first by custom, and what it is
/// multiplied with after.
fn least_conversion(graph: &mut Graph, apply: &Apply, value: &Value) -> Option<Conversion> {
    let storage = |index: usize| graph.storage(apply.operands[index]);
    let mut sparse: Vec<usize> = sparse_operands(graph, apply).rev().collect();
    sparse.sort_by_key(|&index| storage(index) != Storage::RowSparse);
    let mut choices: Vec<u32> = (1..1_u32 << sparse.len()).collect();
    choices.sort_by_key(|choice| choice.count_ones());
    choices.into_iter().find_map(|choice| {
        let chosen = sparse.iter().enumerate().filter(|(bit, _)| choice >> bit & 1 == 1);
        let operands: Vec<usize> = chosen.map(|(_, index)| *index).collect();
        let before = graph.values.len();
        let mut converted = apply.clone();
        for &index in &operands {
            let operand = &mut converted.operands[index];
            *operand = push_conversion(graph, *operand, Storage::Dense, value.place, true);
        }
        match choose(graph, &converted, value) {
            Ok(chosen) if says_the_same(graph, apply, chosen.1) => {
                Some(Conversion { operands, apply: converted, chosen })
            }
            _ => {
                graph.values.truncate(before);
                None
            }
        }
    })
}

/// The positions of the operands that are sparse and read.
fn sparse_operands(graph: &Graph, apply: &Apply) -> impl DoubleEndedIterator<Item = usize> {
    let sparse = |index: &usize| {
        graph.storage(apply.operands[*index]).is_sparse()
            && !apply.operator.lends_shape_only(*index)
    };
    (0..apply.operands.len()).filter(sparse)
}

/// Whether a result of some storage is what dense operands would give: a sparse one is 0 where no
/// operand stores anything, which a quotient (0/0) is not. That has to be written.
fn says_the_same(graph: &Graph, apply: &Apply, result: Storage) -> bool {
    let number = |id: &ValueId| graph.number_of(*id).unwrap_or(Formula::Number(0.0));
    let zeros: Vec<Formula> = apply.operands.iter().map(number).collect();
    let at_zero = apply.operator.elementwise_of(&apply.attributes, &zeros);
    // An operator that is not element-wise has a sparse result only where it is 0.
    result == Storage::Dense || at_zero.map_or(true, |value| value == Formula::Number(0.0))
}

/// Adds to refusals what to write where the refused call is the first operand of another call of an
/// associative operator: `dot(a, dot(x, w))` for `dot(dot(a, x), w)`.
pub(super) fn propose_from_the_right(graph: &Graph, diagnostics: &mut [Diagnostic]) {
    let is_refusal = |diagnostic: &&mut Diagnostic| diagnostic.code == Code::WouldBeDense;
    for diagnostic in diagnostics.iter_mut().filter(is_refusal) {
        let other = graph.ids().find_map(|id| from_the_right(graph, id, diagnostic.place));
        if let (Some(other), Some(help)) = (other, &mut diagnostic.help) {
            *help = format!("write `{other}`, which is the same product; or {help}");
        }
    }
}

/// A call in another order, where its first operand is a call at the given place.
fn from_the_right(graph: &Graph, outer: ValueId, place: Place) -> Option<String> {
    let outer = graph.apply_of(outer)?;
    let &[inner, w] = &outer.operands[..] else { return None };
    let refused = graph.value(inner).broken && graph.value(inner).place == place;
    let inner = graph.apply_of(inner).filter(|_| refused)?;
    let &[a, x] = &inner.operands[..] else { return None };
    let name = outer.operator.name;
    let is_plain = |apply: &Apply| {
        apply.operator == outer.operator && apply.attributes.iter().next().is_none()
    };
    let [a, x, w] = [a, x, w].map(|id| graph.describe(id));
    let associates = outer.operator.is_associative && is_plain(outer) && is_plain(inner);
    associates.then(|| format!("{name}({a}, {name}({x}, {w}))"))
}

/// What to say where no rule covers the operands: what would become dense, and how to ask for it.
fn refusal(graph: &Graph, apply: &Apply, value: &Value, converted: &[usize]) -> Diagnostic {
    let (operator, storages) = (apply.operator, operand_storages(graph, apply));
    let positions: Vec<usize> = sparse_operands(graph, apply).collect();
    let sparse: Vec<ValueId> = positions.iter().map(|index| apply.operands[*index]).collect();
    let number = apply.operands.iter().find_map(|id| graph.number_of(*id));
    let number = number.map(|number| number.bare());
    if let Some(number) = number.filter(|_| sparse.is_empty()) {
        let message =
            format!("`{}` is computed of arrays, and {number} is a number", operator.name);
        return Diagnostic::new(Code::NumberForArray, value.place, message).help(
            "write the number where it is used, or declare an array, `param(frozen)` or `state`",
        );
    }
    let cost = |shape, operands: &[ValueId]| {
        let now: Vec<String> = operands.iter().map(|id| stored_bytes(graph, *id)).collect();
        let now = if now.is_empty() { "nothing".to_owned() } else { now.join(" + ") };
        let (size, element) = (size_formula(shape), graph.element());
        format!("{size} {element}, {}, instead of {now}", dense_bytes(shape, element))
    };
    let message = match converted {
        // What is not converted stays as it is, and so may the result.
        [index] if sparse.len() > 1 => {
            let operand = apply.operands[*index];
            format!(
                "`{}` of {storages} has no kernel: `{}` would be dense, {}",
                operator.name,
                graph.describe(operand),
                cost(&graph.shape(operand), &[operand])
            )
        }
        // Of operands that are all dense nothing would become so.
        _ if sparse.is_empty() => format!("`{}` of {storages} has no kernel", operator.name),
        _ => {
            let shape = graph.unify.resolve_all(value.shape.as_deref().unwrap_or_default());
            format!("`{}` of {storages} would be dense: {}", operator.name, cost(&shape, &sparse))
        }
    };
    let first = sparse.first().map_or_else(String::new, |id| graph.describe(*id));
    // One that may be left out has its name.
    let describe = |place: usize| {
        let given = apply.operands.get(place).map(|id| graph.describe(*id));
        given.unwrap_or_else(|| operator.operands[place].to_owned())
    };
    let help = match operator.way_out(&first, describe) {
        Some(way_out) => way_out,
        None => {
            let spelled = apply.operands.iter().enumerate().map(|(index, id)| {
                let dense = if converted.is_empty() { &positions[..] } else { converted };
                let operand = graph.describe(*id);
                if dense.contains(&index) { format!("dense({operand})") } else { operand }
            });
            let mut words: Vec<String> = spelled.collect();
            let call = match crate::formula::sign_of(operator.name) {
                Some(sign) if words.len() == 2 => words.join(&format!(" {sign} ")),
                _ => {
                    let given = apply.attributes.iter();
                    words.extend(given.map(|(name, value)| format!("{name} = {value}")));
                    format!("{}({})", operator.name, words.join(", "))
                }
            };
            // A rule that a number or an attribute rules out says under which condition it holds.
            let unmet = operator.storage.iter().find_map(|rule| {
                let signature = rule.signature();
                let condition = signature.condition?;
                let without = Signature { condition: None, ..signature };
                covers(graph, apply, &without)
                    .then(|| format!("`{}` is a rule {}; ", rule.text(), condition.text))
            });
            let unmet = unmet.unwrap_or_default();
            format!("{unmet}write `{call}` to accept the cost, or `fallback = warn;` in the model")
        }
    };
    Diagnostic::new(Code::WouldBeDense, value.place, message).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{parse, print};
    use crate::passes::{infer_shapes, infer_storage};

    const OPERANDS: &str = "x = input csr f32 [n, d]\ny = input csr f32 [d, k]\nz = input csr f32 [n, d]\n\
                            r = input row_sparse f32 [n, d]\nv = input row_sparse f32 [d, k]\nu = input dense f32 [n, d]\n";

    /// The lines that follow from one call, and what is said.
    fn run(fallback: &str, call: &str) -> (Vec<String>, Vec<String>) {
        let text = format!("model M f32 {fallback}\n{OPERANDS}o = {call}\noutput o = o");
        let mut graph = parse(&text).unwrap();
        let errors = infer_shapes(&mut graph);
        assert!(errors.is_empty(), "{errors:?}");
        let diagnostics = infer_storage(&mut graph).iter().map(Diagnostic::text).collect();
        let printed = print(&graph);
        let lines = printed.lines().filter(|line| line.contains("(") && !line.contains("input"));
        (lines.map(str::to_owned).collect(), diagnostics)
    }

    #[test]
    fn as_few_operands_as_possible_become_dense() {
        for (call, expected) in [
            ("dot(x, y)", &["%6 = dense(y): dense [d, k]", "o = dot(x, %6): dense [n, k]"][..]),
            (
                "dot(x, z, transpose_lhs = true)",
                &[
                    "%6 = dense(z): dense [n, d]",
                    "o = dot(x, %6, transpose_lhs = true): row_sparse [d, d]",
                ],
            ),
            // No kernel reads both as they are, and of two storages the csr is kept.
            ("dot(r, y)", &["%6 = dense(r): dense [n, d]", "o = dot(%6, y): csr [n, k]"]),
            ("dot(r, v)", &["%6 = dense(v): dense [d, k]", "o = dot(r, %6): row_sparse [n, k]"]),
            // Of two storages, the csr is kept.
            ("multiply(x, r)", &["%6 = dense(r): dense [n, d]", "o = multiply(x, %6): csr [n, d]"]),
            ("multiply(r, x)", &["%6 = dense(r): dense [n, d]", "o = multiply(%6, x): csr [n, d]"]),
            // The quotient of two zeros is not 0, which a csr would say.
            (
                "divide(x, z)",
                &[
                    "%6 = dense(z): dense [n, d]",
                    "%7 = dense(x): dense [n, d]",
                    "o = divide(%7, %6): dense [n, d]",
                ],
            ),
            ("modulo(x, z)", &["%6 = dense(z): dense [n, d]", "o = modulo(x, %6): csr [n, d]"]),
            ("add(x, r)", &["%6 = dense(r): dense [n, d]", "o = add(x, %6): dense [n, d]"]),
            ("log(x)", &["%6 = dense(x): dense [n, d]", "o = log(%6): dense [n, d]"]),
        ] {
            let (lines, said) = run("fallback = allow", call);
            assert_eq!(said, [""; 0], "{call}");
            assert_eq!(lines, expected, "{call}");
        }
    }

    #[test]
    fn a_refusal_says_what_would_be_dense_and_how_to_ask_for_no_more() {
        let (lines, said) = run("", "dot(x, z, transpose_lhs = true)");
        assert_eq!(
            said,
            [
                "[NNZ0301] `dot` of `csr` transposed and `csr` has no kernel: `z` would be dense, n × d f32, 4·n·d bytes, instead of \
              8·nnz(z) bytes\nhelp: write `dot(x, dense(z), transpose_lhs = true)` to accept the cost, or \
              `fallback = warn;` in the model"
            ]
        );
        // Nothing that was tried is left behind.
        assert_eq!(lines, ["o = dot(x, z, transpose_lhs = true): _ [d, d]"]);
        let (_, said) = run("", "divide(x, z)");
        assert_eq!(
            said,
            [
                "[NNZ0301] `divide` of `csr` and `csr` would be dense: n × d f32, 4·n·d bytes, instead of \
              8·nnz(x) bytes + 8·nnz(z) bytes\nhelp: write `dense(x) / dense(z)` to accept the cost, or \
              `fallback = warn;` in the model"
            ]
        );
        let (_, warned) = run("fallback = warn", "multiply(x, r)");
        assert_eq!(
            warned,
            [
                "[NNZ0305] fallback: `multiply` of `csr` and `row_sparse` has no kernel: `r` would be dense, \
              n × d f32, 4·n·d bytes, instead of 4·d·rows(r) bytes"
            ]
        );
    }

    #[test]
    fn a_value_is_converted_once() {
        let text = format!(
            "model M f32 fallback = allow\n{OPERANDS}o = log(x)\np = exp(x)\noutput o = o\noutput p = p"
        );
        let mut graph = parse(&text).unwrap();
        assert!(infer_shapes(&mut graph).is_empty() && infer_storage(&mut graph).is_empty());
        let printed = print(&graph);
        assert!(printed.contains(
            "%6 = dense(x): dense [n, d]\no = log(%6): dense [n, d]\np = exp(%6): dense [n, d]\n"
        ), "{printed}");
    }
}
