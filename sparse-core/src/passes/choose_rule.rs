//! Choice of a storage rule for an operator's operands.

use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{Apply, Graph, Place, Value};
use crate::operators::{self, Pattern, Signature};
use crate::storage::Storage;

/// Why no rule was chosen.
pub(super) enum NoRule {
    /// None covers the operands' storage.
    Covers,
    /// Something that no conversion helps with.
    Error(Diagnostic),
}

/// The first rule that covers the operands, and the storage of its result.
pub(super) fn choose(
    graph: &Graph,
    apply: &Apply,
    value: &Value,
) -> Result<(usize, Storage), NoRule> {
    check_elements(graph, apply, value.place).map_err(NoRule::Error)?;
    let requested = apply
        .attributes
        .storage("out")
        .or(value.annotation.as_ref().map(|annotation| annotation.storage));
    for (index, rule) in apply.operator.storage.iter().enumerate() {
        let signature = rule.signature();
        if !covers(graph, apply, &signature) {
            continue;
        }
        // Broadcasting to a third dimension leaves csr behind.
        if signature.result == Storage::Csr
            && value.shape.as_ref().is_some_and(|shape| shape.len() != 2)
        {
            continue;
        }
        let result = match requested {
            Some(wanted) if signature.results().any(|result| result == wanted) => wanted,
            // An annotation that no rule meets is reported by its own code.
            Some(wanted) if apply.attributes.storage("out").is_some() => {
                let offered: Vec<String> =
                    signature.results().map(|result| format!("`{result}`")).collect();
                let storages = operand_storages(graph, apply);
                let message = format!(
                    "`{}` of {storages} cannot give its result as `{wanted}`",
                    apply.operator.name
                );
                let help = format!("it gives {}; convert with `{wanted}(…)`", offered.join(" or "));
                let error = Diagnostic::new(Code::NotOnRequest, value.place, message).help(help);
                return Err(NoRule::Error(error));
            }
            _ => signature.result,
        };
        if result == Storage::RowSparse && value.shape.as_ref().is_some_and(Vec::is_empty) {
            let message = format!(
                "the result of `{}` would be `row_sparse` without a dimension: row_sparse has rank 1 or more",
                apply.operator.name
            );
            let error = Diagnostic::new(Code::StorageRank, value.place, message);
            return Err(NoRule::Error(error.help("leave one number dense: it has no rows")));
        }
        return Ok((index, result));
    }
    Err(NoRule::Covers)
}

/// Whether a rule covers the operands: their storage, their shapes, and its condition.
pub(super) fn covers(graph: &Graph, apply: &Apply, signature: &Signature) -> bool {
    if signature.operands.len() != apply.operands.len() {
        return false;
    }
    if !condition_holds(graph, apply, signature) {
        return false;
    }
    let each = signature.operands.iter().zip(&apply.operands).enumerate();
    let operands = each.into_iter().all(|(index, (pattern, id))| {
        let value = graph.value(*id);
        let number = graph.is_number(*id);
        match pattern {
            Pattern::Scalar => number,
            Pattern::Like => !number,
            // Of kernels only.
            Pattern::Unit(_) => false,
            Pattern::Ids => {
                !number && graph.storage(*id) == Storage::Dense && value.element.is_id()
            }
            Pattern::Array(storage, transposed) => {
                let turned = apply
                    .operator
                    .transpose_flag(index)
                    .is_some_and(|flag| apply.attributes.flag(flag));
                !number
                    && value.element.is_number()
                    && graph.storage(*id) == *storage
                    && (*storage == Storage::Dense || turned == *transposed)
            }
        }
    });
    operands
        && (!signature.same_shape
            || apply.operands.windows(2).all(|pair| graph.shape(pair[0]) == graph.shape(pair[1])))
}

fn condition_holds(graph: &Graph, apply: &Apply, signature: &Signature) -> bool {
    let Some(condition) = signature.condition else { return true };
    about(graph, apply, |given| (condition.holds)(given))
}

/// Reads what conditions of rules are about.
pub(super) fn about<R>(
    graph: &Graph,
    apply: &Apply,
    read: impl FnOnce(&operators::Given<'_>) -> R,
) -> R {
    let numbers: Vec<_> = apply.operands.iter().map(|id| graph.number_of(*id)).collect();
    let ranks: Vec<usize> = apply.operands.iter().map(|id| graph.shape(*id).len()).collect();
    let (operator, attributes) = (apply.operator, &apply.attributes);
    let names = Some(&graph.unify);
    read(&operators::Given { operator, attributes, numbers: &numbers, ranks: &ranks, names })
}

/// Ids where numbers are needed, or numbers where ids are: no storage would help.
fn check_elements(graph: &Graph, apply: &Apply, place: Place) -> Result<(), Diagnostic> {
    let mut signatures: Vec<Signature> =
        apply.operator.storage.iter().map(operators::Rule::signature).collect();
    // What the rules that hold say; where none does, what all of them say.
    if signatures.iter().any(|signature| condition_holds(graph, apply, signature)) {
        signatures.retain(|signature| condition_holds(graph, apply, signature));
    }
    for (index, id) in apply.operands.iter().enumerate() {
        let value = graph.value(*id);
        if apply.operator.lends_shape_only(index) {
            continue;
        }
        let mut patterns = signatures.iter().filter_map(|signature| signature.operands.get(index));
        let ids = patterns.clone().count() > 0
            && patterns.clone().all(|pattern| *pattern == Pattern::Ids);
        let numbers = !patterns.any(|pattern| *pattern == Pattern::Ids);
        let is_number = value.element.is_number();
        if (!ids || !is_number) && (!numbers || is_number) {
            continue;
        }
        let (operator, role) = (apply.operator.name, apply.operator.operands[index]);
        let name = graph.describe(*id);
        let of_classes = matches!(
            apply.operator.kind,
            operators::Kind::Loss { label: operators::LossLabel::Class, .. }
        );
        let (message, help) = if ids {
            (
                format!(
                    "`{operator}` needs integer ids for its `{role}`, but `{name}` holds `{}`",
                    value.element
                ),
                format!("declare `{name}: dense<u32>[…]`, or `u64`, or `i64`"),
            )
        } else {
            (
                format!(
                    "`{operator}` computes with numbers, but `{name}` holds ids of type `{}`",
                    value.element
                ),
                format!("declare `{name}` with the element type `{}`", graph.element()),
            )
        };
        let code = if of_classes && index == 1 { Code::ClassIds } else { Code::ElementMismatch };
        return Err(Diagnostic::new(code, place, message).help(help));
    }
    Ok(())
}

/// `a \`csr\` value`, `the number 3` or `\`csr\` and \`row_sparse\``.
pub(super) fn operand_storages(graph: &Graph, apply: &Apply) -> String {
    let words: Vec<String> = apply
        .operands
        .iter()
        .enumerate()
        .map(|(index, id)| {
            if let Some(number) = graph.number_of(*id) {
                return format!("the number {}", number.bare());
            }
            let turned = apply
                .operator
                .transpose_flag(index)
                .is_some_and(|flag| apply.attributes.flag(flag));
            format!("`{}`{}", graph.storage(*id), if turned { " transposed" } else { "" })
        })
        .collect();
    match words.as_slice() {
        [one] if graph.is_number(apply.operands[0]) => one.clone(),
        [one] => format!("a {one} value"),
        _ => words.join(" and "),
    }
}
