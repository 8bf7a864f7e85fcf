//! Dimensions that number table rows and nothing else.

use super::rows::{RowSet, TableRows, named_rows, rows_added, within_rows};
use crate::ir::{Graph, Kind, ValueId};
use crate::shapes::Dim;
use crate::storage::Storage;
use std::collections::BTreeSet;

/// The named dimensions that number table rows and nothing else, by name. A step may be computed
/// with tables of those rows alone that its batch names, numbered anew in their order: its loss and
/// the rows of its gradients stay what they are.
///
/// Such a dimension is the first extent of trained tables, all of which are read and written in the
/// rows that the same inputs name. Those inputs are columns of csr, or ids, that name rows of these
/// tables and do nothing else. No other value has the dimension, and no number is its extent.
pub fn row_dimensions(graph: &Graph, rows: &[TableRows]) -> Vec<String> {
    let mut names = Vec::new();
    for table in rows {
        if let Some(Dim::Named(name)) = graph.shape(table.parameter).first()
            && !names.contains(name)
        {
            names.push(name.clone());
        }
    }
    names.retain(|name| numbers_rows(graph, rows, name));
    names
}

fn numbers_rows(graph: &Graph, rows: &[TableRows], name: &str) -> bool {
    let has = |id: ValueId| graph.shape(id).iter().any(|dim| is(dim, name));
    let Some(inputs) = inputs_of(rows.iter().filter(|table| has(table.parameter))) else {
        return false;
    };
    let inputs: BTreeSet<ValueId> = inputs.iter().copied().collect();
    let is_number = |id| graph.number_of(id).is_some_and(|number| number.names().contains(&name));
    graph.ids().all(|id| {
        !is_number(id)
            && match &graph.value(id).kind {
                Kind::Parameter { .. } => !has(id) || is_table(graph, id, name),
                Kind::Input | Kind::Label => {
                    !has(id) || inputs.contains(&id) && is_matrix(graph, id, name)
                }
                Kind::Apply(_) => only_names_rows(graph, id, &inputs, &has),
                _ => !has(id),
            }
    })
}

/// The inputs that name the rows of some trained tables, if they are the same for each, read and
/// written.
fn inputs_of<'r>(mut tables: impl Iterator<Item = &'r TableRows>) -> Option<&'r BTreeSet<ValueId>> {
    let first = tables.next()?;
    let RowSet::Columns(inputs) = &first.reads else { return None };
    let is_alike = |table: &TableRows| {
        table.reads == first.reads && table.writes.as_ref() == Some(&first.reads)
    };
    let are_alike = is_alike(first) && tables.all(is_alike);
    (are_alike && !inputs.is_empty()).then_some(inputs)
}

fn is(dim: &Dim, name: &str) -> bool {
    matches!(dim, Dim::Named(known) if known == name)
}

/// Whether the dimension is the first extent and no other.
fn is_table(graph: &Graph, id: ValueId, name: &str) -> bool {
    let shape = graph.shape(id);
    shape.iter().enumerate().all(|(axis, dim)| is(dim, name) == (axis == 0))
}

/// Whether a csr has the dimension as its columns and nowhere else.
fn is_matrix(graph: &Graph, id: ValueId, name: &str) -> bool {
    let shape = graph.shape(id);
    graph.storage(id) == Storage::Csr
        && shape.len() == 2
        && shape.iter().enumerate().all(|(axis, dim)| is(dim, name) == (axis == 1))
}

/// Whether an operator takes tables and the inputs that name their rows for nothing but reading
/// named rows, and adding to them.
fn only_names_rows(
    graph: &Graph,
    id: ValueId,
    inputs: &BTreeSet<ValueId>,
    has: &impl Fn(ValueId) -> bool,
) -> bool {
    let Some(apply) = graph.apply_of(id) else { return true };
    let named = named_rows(graph, apply).filter(|(table, by)| has(*table) && inputs.contains(by));
    let added = rows_added(graph, apply).filter(|(by, ..)| has(id) && inputs.contains(by));
    let within = within_rows(graph, id, apply);
    let is_sparse = |id: ValueId| graph.storage(id) == Storage::RowSparse;
    let is_sum = |operand: ValueId| {
        within.contains(&operand) && is_sparse(operand) && graph.apply_of(operand).is_some()
    };
    let mut operands = apply.operands.iter().copied().enumerate();
    let operands_do = operands.all(|(at, operand)| {
        !(has(operand) || inputs.contains(&operand))
            || apply.operator.lends_shape_only(at)
            || named.is_some_and(|(table, by)| [table, by].contains(&operand))
            || added.is_some_and(|(by, ..)| by == operand)
            || is_sum(operand)
    });
    let result_does = !has(id)
        || is_sparse(id) && (added.is_some() || apply.operands.iter().any(|id| is_sum(*id)));
    operands_do && result_does
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Severity;
    use crate::ir::parse;
    use crate::passes::{differentiate, infer_shapes, infer_storage, rows};

    fn dimensions_of(declared: &str, lines: &str) -> Vec<String> {
        let text = format!("model M f32\n{declared}y = label dense f32 [n, 1]\n{lines}");
        let mut graph = parse(&text).unwrap();
        for pass in [infer_shapes, infer_storage, differentiate] {
            let found = pass(&mut graph);
            let is_error = |code: crate::diagnostics::Code| code.severity() == Severity::Error;
            assert!(!found.iter().any(|found| is_error(found.code)), "{found:?}");
        }
        let rows = rows(&graph);
        row_dimensions(&graph, &rows)
    }

    const TABLE: &str = "x = input csr f32 [n, d]\nw = param row_sparse f32 [d, 1] \"\"\n";
    const TABLES: &str = "x = input csr f32 [n, d]\nw = param row_sparse f32 [d, 1] \"\"\n\
        v = param row_sparse f32 [d, 3] \"\"\n";

    const LOSS: &str = "l = squared_error(s, y)\nloss l";

    #[test]
    fn tables_of_named_rows_have_a_row_dimension() {
        let linear = format!("s = dot(x, w)\n{LOSS}");
        assert_eq!(dimensions_of(TABLE, &linear), ["d"]);
        let machine =
            format!("a = dot(x, w)\nb = pairwise_interaction(x, v)\ns = add(a, b)\n{LOSS}");
        assert_eq!(dimensions_of(TABLES, &machine), ["d"]);
    }

    #[test]
    fn ids_that_only_name_rows_have_one_for_each_kind() {
        let tables = "u = input dense u64 [n]\ni = input dense u64 [n]\n\
            p = param row_sparse f32 [users, 4] \"\"\nq = param row_sparse f32 [items, 4] \"\"\n";
        let lines = "a = take(p, u)\nb = take(q, i)\nc = multiply(a, b)\n\
            s = sum(c, axis = 1, keepdims = true)\n";
        assert_eq!(dimensions_of(tables, &format!("{lines}{LOSS}")), ["users", "items"]);
    }

    #[test]
    fn other_uses_of_a_table_or_of_its_inputs_have_none() {
        for (tables, lines) in [
            // All rows of `w`.
            (TABLE, "b = sin(w)\ns = dot(x, b)\n"),
            // The mean is over as many columns as there are.
            (TABLE, "a = dot(x, w)\nb = mean(x, axis = 1, keepdims = true)\ns = add(a, b)\n"),
            // The columns of a computed csr.
            (TABLE, "b = tanh(x)\ns = dot(b, w)\n"),
            // Of a table that is read only, no row is written.
            (
                TABLES,
                "a = dot(x, w)\nb = dot(x, v)\nt = stop_gradient(b)\n\
                 c = sum(t, axis = 1, keepdims = true)\ns = add(a, c)\n",
            ),
        ] {
            let found = dimensions_of(tables, &format!("{lines}{LOSS}"));
            assert!(found.is_empty(), "{lines}: {found:?}");
        }
    }

    #[test]
    fn ids_that_are_also_numbers_have_none() {
        let tables = "u = input dense u64 [n]\nw = param row_sparse f32 [d, 1] \"\"\n\
            g = param dense f32 [9, 1] \"\"\n";
        let lines = "a = take(w, u)\nb = one_hot(u, depth = 9)\nc = dot(b, g)\ns = add(a, c)\n";
        assert!(dimensions_of(tables, &format!("{lines}{LOSS}")).is_empty());
    }
}
