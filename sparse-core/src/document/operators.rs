//! The pages of operators, one for each family, and their index.

use super::tables::{cell, groups, patterns, word};
use super::{Page, code_list, generated_from, storage_tables, table};
use crate::formula::{self, Formula};
use crate::operators::{self, AttributeKind, Gradient, Kind, Operator, Pattern};
use crate::shape_rules;
use crate::storage::Storage;

const SOURCE: &str = "the operator table (`sparse-core/src/operators`)";

/// `docs/operators/*.md`.
pub(super) fn pages() -> Vec<Page> {
    let mut pages = vec![index()];
    for (family, rows) in operators::families() {
        pages.push(Page {
            path: format!("docs/operators/{family}.md"),
            text: family_page(family, rows),
        });
    }
    pages
}

fn index() -> Page {
    let mut text = generated_from(SOURCE);
    text.push_str("# Operators\n\n");
    let rows: Vec<Vec<String>> = operators::families()
        .into_iter()
        .map(|(family, rows)| {
            let offered = rows.iter().filter(|operator| !operator.internal);
            vec![
                format!("[{family}]({family}.md)"),
                code_list(offered.map(|operator| operator.name)),
            ]
        })
        .collect();
    text.push_str(&table(&["family", "operators"], &rows));
    text.push_str(
        "\n## Storage of the result\n\n\
         What an operator gives for operands of each storage type. A `csr` holds the entries of a matrix row by row; a `row_sparse` \
         array holds some rows of a larger one: a gradient, or a table that batches read by rows.\n\n",
    );
    text.push_str(&storage_tables());
    text.push_str(
        "\n## Reading the pages\n\n\
         Storage rules give a pattern for each operand and the storage of the result. Shape rules are letters for extents \
         that must be equal, `same`, `broadcast` (as NumPy does), `reduce` (the axes of `axis` removed), or the name of a rule \
         that depends on attributes. Gradients are formulas over these operators, in the operands, the \
         result `out` and the gradient `grad` that arrives at it; they are inferred by the same rules.\n",
    );
    Page { path: "docs/operators/README.md".into(), text }
}

fn family_page(family: &str, rows: &[&'static Operator]) -> String {
    let mut text = generated_from(SOURCE);
    text.push_str(&format!("# Operators: {family}\n\n[All operators](README.md)\n"));
    let offered = || rows.iter().copied().filter(|operator| !operator.internal);
    let (unary, others): (Vec<_>, Vec<_>) =
        offered().partition(|operator| matches!(operator.kind, Kind::Unary(_)));
    let (binary, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|operator| matches!(operator.kind, Kind::Binary(..)));
    text.push_str(&unary_tables(&unary));
    text.push_str(&binary_tables(&binary));
    for operator in others {
        text.push_str(&section(operator));
    }
    let internal: Vec<Vec<String>> = rows
        .iter()
        .filter(|operator| operator.internal && !is_scalar_gradient(operator))
        .map(|operator| {
            let rules = operator.storage.iter().map(|rule| rule.text());
            vec![code_list([operator.name]), operator.summary.to_owned(), code_list(rules)]
        })
        .collect();
    if !internal.is_empty() {
        text.push_str("\n## In gradients only\n\nThe language does not offer these; gradients are made of them.\n\n");
        text.push_str(&table(&["operator", "is", "rules"], &internal));
    }
    text
}

/// The gradient of a unary operator: its page shows the formula in place of it.
fn is_scalar_gradient(operator: &Operator) -> bool {
    matches!(operator.kind, Kind::Binary(family, _) if family.is_gradient())
}

/// All element-wise functions of one operand, a line each.
fn unary_tables(unary: &[&Operator]) -> String {
    if unary.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = unary
        .iter()
        .map(|operator| {
            let value = match operator.kind {
                Kind::Unary(value) => code_list([value]),
                _ => String::new(),
            };
            let cells =
                Storage::ALL.map(|storage| cell(operator, &[Pattern::Array(storage, false)]));
            let name = if operator.attributes.is_empty() {
                operator.name.to_owned()
            } else {
                call(operator)
            };
            let start = [
                code_list([name]),
                operator.summary.to_owned(),
                value,
                code_list([derivative(operator)]),
            ];
            start.into_iter().chain(cells).collect()
        })
        .collect();
    let arrays = Storage::ALL.map(|storage| code_list([storage.name()]));
    let mut head = vec!["operator", "is", "value", "gradient"];
    head.extend(arrays.iter().map(String::as_str));
    let mut text = String::from(
        "\nFunctions of each element `x`; the result is `y`, and `g` the gradient that arrives at it. A function that is 0 \
         at 0 keeps the storage of its operand, another one takes dense operands only: an empty cell is a compile error \
         ([NNZ0301](../errors.md#nnz0301)). A kernel has the name of the function and of the operand's storage",
    );
    if let Some((operator, rule)) = unary.iter().find_map(|row| Some((row, row.storage.first()?))) {
        let signature = rule.signature();
        let example = kernel(operator, &signature, signature.result);
        text.push_str(&format!(": `{example}`"));
    }
    text.push_str(".\n\n");
    text.push_str(&table(&head, &rows));
    let refused: Vec<Vec<String>> = unary
        .iter()
        .filter_map(|operator| {
            let way_out = in_general(operator)?;
            Some(vec![code_list([operator.name]), way_out])
        })
        .collect();
    if !refused.is_empty() {
        text.push_str("\nWhere a sparse operand is refused:\n\n");
        text.push_str(&table(&["operator", "the way out"], &refused));
    }
    text
}

/// The element-wise functions of two operands: those with the same storage rules together.
fn binary_tables(binary: &[&'static Operator]) -> String {
    let mut text = String::new();
    if binary.is_empty() {
        return text;
    }
    text.push_str(
        "\nFunctions of an element `x` of the left operand and `y` of the right one; dense operands broadcast as in NumPy. `grad` is the \
         gradient that arrives, `out` the result; `reduce_to` sums over what was broadcast, and `0` says that nothing passes. Each \
         costs O(stored elements of both operands), and O(size of the result) where that is dense. An empty cell is a compile error \
         ([NNZ0301](../errors.md#nnz0301)); (=): both operands have one shape.\n",
    );
    for group in groups(binary.iter().copied()) {
        let names = code_list(group.iter().map(|operator| operator.name));
        text.push_str(&format!("\n## {names}\n\n"));
        let [first, second] = [0, 1].map(|index| group[0].operands[index]);
        text.push_str(&matrix(group[0], first, second));
        text.push('\n');
        let rows: Vec<Vec<String>> = group
            .iter()
            .map(|operator| {
                let value = match operator.kind {
                    Kind::Binary(_, value) => code_list([value]),
                    _ => String::new(),
                };
                let mut row = vec![code_list([operator.name]), operator.summary.to_owned(), value];
                row.extend(operator.gradient.iter().map(|row| gradient(row).swap_remove(1)));
                row
            })
            .collect();
        let head = ["operator", "is", "value", "gradient of the left", "of the right"];
        text.push_str(&table(&head, &rows));
    }
    text
}

/// The gradient of a unary operator as a formula in `g`, `x` and `y`.
fn derivative(operator: &Operator) -> String {
    let Some(Gradient { formula: Ok(text), .. }) = operator.gradient.first() else {
        return "none".into();
    };
    let called = match formula::parse(text) {
        Ok(Formula::Call(name, ..)) => operators::find(&name),
        _ => None,
    };
    match called.map(|row| row.kind) {
        Some(Kind::Binary(family, scalar)) if family.is_gradient() => scalar.to_owned(),
        _ => text.replace("grad", "g"),
    }
}

/// The section of one operator.
fn section(operator: &Operator) -> String {
    let mut text = format!("\n## `{}`\n\n{}\n\n", operator.name, operator.summary);
    text.push_str(&format!("- Call: {}\n", code_list([call(operator)])));
    match shape_rules::describe(operator.shape) {
        Some(rule) => text.push_str(&format!("- Shape: {rule}\n")),
        None => text.push_str(&format!("- Shape: {}\n", code_list([operator.shape]))),
    }
    text.push_str(&format!("- Cost: {}\n", operator.cost_in_words()));
    for attribute in operator.attributes {
        let takes = match attribute.kind {
            AttributeKind::Flag => "`true` or `false`, which is the default".to_owned(),
            AttributeKind::Axes => {
                "an axis or a list of axes, negative from the end; all axes where it is not given"
                    .to_owned()
            }
            AttributeKind::Integer(Some(default)) => {
                format!("an integer, {default} where it is not given")
            }
            AttributeKind::Integer(None) => "an integer, which must be given".to_owned(),
            AttributeKind::Number(Some(default)) => {
                format!("a number, {default} where it is not given")
            }
            AttributeKind::Number(None) => "a number, which must be given".to_owned(),
            AttributeKind::List => "a list of integers; `_` leaves an entry open".to_owned(),
            AttributeKind::Storage => {
                "the storage of the result, where the rule offers another on request".to_owned()
            }
        };
        text.push_str(&format!("- `{}`: {takes}\n", attribute.name));
    }
    text.push_str(&format!("\n{}", storage(operator)));
    if let Some(way_out) = way_out(operator) {
        text.push_str(&format!(
            "\nA combination without a rule is refused ([NNZ0301](../errors.md#nnz0301)); the way out: {way_out}.\n"
        ));
    }
    let gradients: Vec<Vec<String>> = operator.gradient.iter().map(gradient).collect();
    text.push('\n');
    text.push_str(&table(&["gradient with respect to", "is"], &gradients));
    text
}

/// `dot(lhs, rhs, transpose_lhs = …)`.
fn call(operator: &Operator) -> String {
    let operands = operator.operands.iter().enumerate();
    let operands = operands.map(|(index, name)| {
        if index < operator.required() { (*name).to_owned() } else { format!("{name} = …") }
    });
    let attributes = operator.attributes.iter();
    let attributes = attributes.map(|attribute| format!("{} = …", attribute.name));
    let all: Vec<String> = operands.chain(attributes).collect();
    format!("{}({})", operator.name, all.join(", "))
}

/// The storage rules with their kernels; for two operands also as a matrix.
fn storage(operator: &Operator) -> String {
    let mut text = String::new();
    if let [first, second] = operator.operands {
        text.push_str(&matrix(operator, first, second));
        text.push('\n');
    }
    let rows: Vec<Vec<String>> = operator
        .storage
        .iter()
        .map(|rule| {
            let signature = rule.signature();
            let mut note = Vec::new();
            if signature.same_shape {
                note.push("operands of one shape".to_owned());
            }
            note.extend(signature.condition.map(|condition| condition.text.to_owned()));
            if let Some(storage) = signature.on_request {
                note.push(format!("`{storage}` on request"));
            }
            let kernels = rule.signatures().flat_map(|signature| {
                let name = |result| kernel(operator, &signature, result);
                signature.results().map(name).collect::<Vec<_>>()
            });
            vec![code_list([rule.text()]), note.join(", "), code_list(kernels)]
        })
        .collect();
    text.push_str(&table(&["rule", "", "kernel"], &rows));
    text
}

/// The result for each pair of operands.
fn matrix(operator: &Operator, first: &str, second: &str) -> String {
    let columns = patterns([operator], 1);
    let head: Vec<String> = std::iter::once(format!("`{first}` ↓, `{second}` →"))
        .chain(columns.iter().map(|pattern| code_list([word(*pattern)])))
        .collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = patterns([operator], 0)
        .into_iter()
        .map(|lhs| {
            let cells = columns.iter().map(|rhs| cell(operator, &[lhs, *rhs]));
            std::iter::once(code_list([word(lhs)])).chain(cells).collect()
        })
        .collect();
    table(&head, &rows)
}

/// A kernel's name, as plans show it.
fn kernel(operator: &Operator, signature: &operators::Signature, result: Storage) -> String {
    format!("{}_{}", operator.name, signature.kernel(result))
}

/// What to write where a combination is refused; `None` where every combination of storage types
/// has a rule.
fn way_out(operator: &Operator) -> Option<String> {
    let mut combinations = vec![Vec::new()];
    for index in 0..operator.operands.len() {
        let arrays = patterns([operator], index);
        let arrays: Vec<Pattern> =
            arrays.into_iter().filter(|pattern| matches!(pattern, Pattern::Array(..))).collect();
        combinations = combinations
            .into_iter()
            .flat_map(|start: Vec<Pattern>| {
                arrays.iter().map(move |pattern| {
                    let mut longer = start.clone();
                    longer.push(*pattern);
                    longer
                })
            })
            .collect();
    }
    let refused = combinations.iter().any(|operands| cell(operator, operands).is_empty());
    refused.then(|| match in_general(operator) {
        Some(way_out) => way_out,
        None => "write `dense(…)` around the sparse operand to accept the cost, or `fallback = warn;` in the model".into(),
    })
}

/// The way out of a refusal, of operands by their names.
fn in_general(operator: &Operator) -> Option<String> {
    operator.way_out(operator.operands[0], |place| operator.operands[place].to_owned())
}

fn gradient(row: &Gradient) -> Vec<String> {
    let operand = match row.when {
        None => format!("`{}`", row.operand),
        Some(when) => {
            let conditions =
                when.split(" and ").map(|condition| match condition.strip_prefix('!') {
                    Some(flag) => format!("without `{flag}`"),
                    None => format!("with `{condition}`"),
                });
            format!("`{}`, {}", row.operand, conditions.collect::<Vec<_>>().join(" and "))
        }
    };
    let is = match row.formula {
        Ok(formula) => format!("`{formula}`"),
        Err(why) => format!("none: {why}"),
    };
    vec![operand, is]
}
