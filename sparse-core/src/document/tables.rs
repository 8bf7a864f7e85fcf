//! Tables of storage rules: operators × storage types of operands → storage of the result.

use super::{code_list, table};
use crate::operators::{self, Operator, Pattern, Rule};
use crate::storage::Storage;

/// Tables of the operators with one operand and with two, and the rules of those with more;
/// operators with the same rules share a row.
pub fn storage_tables() -> String {
    let groups = groups(operators::all());
    let arrays: Vec<String> = Storage::ALL.map(|storage| code(storage.name())).into();
    let one: Vec<Vec<String>> = groups
        .iter()
        .filter(|group| group[0].operands.len() == 1)
        .map(|group| {
            let cells =
                Storage::ALL.map(|storage| cell(group[0], &[Pattern::Array(storage, false)]));
            std::iter::once(names(group)).chain(cells).collect()
        })
        .collect();
    let mut head = vec!["operand:"];
    head.extend(arrays.iter().map(String::as_str));
    let mut text = table(&head, &one);

    let binary: Vec<&Vec<&Operator>> =
        groups.iter().filter(|group| group[0].operands.len() == 2).collect();
    let seconds = patterns(binary.iter().map(|group| group[0]), 1);
    let columns: Vec<String> = seconds.iter().map(|pattern| code(&word(*pattern))).collect();
    let mut head = vec!["", "first operand ↓, second →"];
    head.extend(columns.iter().map(String::as_str));
    let mut rows = Vec::new();
    for group in binary {
        let mut name = names(group);
        for first in patterns([group[0]], 0) {
            let cells = seconds.iter().map(|second| cell(group[0], &[first, *second]));
            let cells: Vec<String> = cells.collect();
            if cells.iter().all(String::is_empty) {
                continue;
            }
            let mut row = vec![std::mem::take(&mut name), code(&word(first))];
            row.extend(cells);
            rows.push(row);
        }
    }
    text.push('\n');
    text.push_str(&table(&head, &rows));
    text.push_str(
        "\nAn empty cell is a compile error. `csr'` is a csr that is read transposed, `scalar` a number, `ids` a dense \
         array of integer ids, `like` any array, of which the shape alone is read; (=): both operands have one shape; (dense): `dense` on request, with `out = dense`. A dense operand of a \
         product is read transposed or not.\n",
    );
    let more: Vec<Vec<String>> = groups
        .iter()
        .filter(|group| group[0].operands.len() > 2)
        .map(|group| {
            let rules = group[0].storage.iter().map(Rule::text);
            vec![names(group), code_list(rules)]
        })
        .collect();
    if !more.is_empty() {
        text.push('\n');
        text.push_str(&table(&["operators", "rules"], &more));
    }
    text
}

/// The operators that the language offers, those with equal rules together, in the order of the
/// table.
pub(super) fn groups(all: impl Iterator<Item = &'static Operator>) -> Vec<Vec<&'static Operator>> {
    let mut groups: Vec<Vec<&'static Operator>> = Vec::new();
    for operator in all.filter(|operator| !operator.internal) {
        let same = |other: &&'static Operator| {
            let (mut a, mut b) = (signatures(operator), signatures(other));
            a.sort();
            b.sort();
            a == b
        };
        match groups.iter_mut().find(|group| same(&group[0])) {
            Some(group) => group.push(operator),
            None => groups.push(vec![operator]),
        }
    }
    groups
}

/// What distinguishes an operator's rules from another's.
fn signatures(operator: &Operator) -> Vec<(&'static str, Option<Storage>, bool, Option<&str>)> {
    let rules = operator.storage.iter().map(|rule| {
        let signature = rule.signature();
        let condition = signature.condition.map(|condition| condition.text);
        (rule.text(), signature.on_request, signature.same_shape, condition)
    });
    rules.collect()
}

/// The patterns of operand `index` in the operators' rules, the storage types first.
pub(super) fn patterns<'a>(
    operators: impl IntoIterator<Item = &'a Operator>,
    index: usize,
) -> Vec<Pattern> {
    let mut found: Vec<Pattern> = Storage::ALL.map(|storage| Pattern::Array(storage, false)).into();
    for operator in operators {
        for rule in operator.storage {
            found.extend(rule.signature().operands.get(index));
        }
    }
    found.sort_by_key(|pattern| match pattern {
        Pattern::Array(storage, transposed) => (0, Some(*storage), *transposed),
        Pattern::Scalar => (1, None, false),
        Pattern::Ids => (2, None, false),
        Pattern::Like => (3, None, false),
        Pattern::Unit(transposed) => (4, None, *transposed),
    });
    found.dedup();
    found
}

/// The result of an operator for operands of these patterns, or nothing where it is refused.
pub(super) fn cell(operator: &Operator, operands: &[Pattern]) -> String {
    let covering = operator.storage.iter().map(Rule::signature);
    let mut text = String::new();
    for signature in covering.filter(|signature| signature.operands == operands) {
        if !text.is_empty() {
            text.push_str(", else ");
        }
        text.push_str(if signature.gives_ids { "ids" } else { signature.result.name() });
        if signature.same_shape {
            text.push_str(" (=)");
        }
        if let Some(storage) = signature.on_request {
            text.push_str(&format!(" ({storage})"));
        }
        match signature.condition {
            Some(condition) => text.push_str(&format!(" {}", condition.text)),
            None => break,
        }
    }
    text
}

/// A pattern as rules write it: `csr'`.
pub(super) fn word(pattern: Pattern) -> String {
    match pattern {
        Pattern::Array(storage, transposed) => {
            format!("{storage}{}", if transposed { "'" } else { "" })
        }
        Pattern::Scalar => "scalar".into(),
        Pattern::Ids => "ids".into(),
        Pattern::Like => "like".into(),
        Pattern::Unit(transposed) => format!("csr<unit>{}", if transposed { "'" } else { "" }),
    }
}

fn code(word: &str) -> String {
    format!("`{word}`")
}

fn names(group: &[&Operator]) -> String {
    code_list(group.iter().map(|operator| operator.name))
}
