//! Functions of a table that are computed for the rows which a batch reads.
//!
//! `dot(x, relu(w))` reads some rows of `relu(w)`. Reading rows commutes with functions of elements
//! and of rows: the rows of `w` are read first, and the function is computed for these. Gradients,
//! made of what is so computed, have these rows too.

use super::csr_patterns::find_roots;
use super::instantiate::derived;
use super::rows::{named_rows, rows_read_as, rows_stored, within_rows};
use crate::ir::{Apply, Attributes, Graph, Kind, Place, Update, Value, ValueId};
use crate::operators::{Operator, RowUse};
use crate::storage::Storage;
use std::collections::{BTreeSet, HashMap};

/// Lets operators that read rows of a function of a table read a function of rows of the table.
pub fn read_rows_first(graph: &mut Graph) {
    let is_function = functions_of_tables(graph);
    let before = graph.clone();
    let mut roots = Vec::new();
    find_roots(&before, &mut roots);
    if !before.ids().any(|id| named_table(&before, &is_function, id).is_some()) {
        return;
    }
    graph.values.clear();
    let mut renamed: Vec<ValueId> = Vec::with_capacity(before.values.len());
    // For each function and the value that names the rows of it that are read: the function of
    // these rows.
    let mut made: HashMap<(ValueId, ValueId), ValueId> = HashMap::new();
    for id in before.ids() {
        let mut value = before.value(id).clone();
        let read = named_table(&before, &is_function, id).and_then(|(table, by)| {
            // One reading serves all csr values that store the same places.
            let by = roots[by.0].unwrap_or(by);
            let rows =
                FunctionOfRows { before: &before, is_function: &is_function, renamed: &renamed };
            Some((table, rows.make(graph, table, by, value.place, &mut made)?))
        });
        if let Kind::Apply(apply) = &mut value.kind {
            for operand in &mut apply.operands {
                *operand = match read {
                    Some((table, rows)) if *operand == table => rows,
                    _ => renamed[operand.0],
                };
            }
        }
        renamed.push(graph.push(value));
    }
    rename(graph, &renamed);
    hand_names_on(graph, &renamed, &made);
}

/// A function that nothing reads as a whole has its name as the function of rows.
fn hand_names_on(
    graph: &mut Graph,
    renamed: &[ValueId],
    made: &HashMap<(ValueId, ValueId), ValueId>,
) {
    let roots = super::simplify::roots(graph).chain(graph.claims.iter().map(|claim| claim.value));
    let needed = graph.ancestors(roots.collect::<Vec<_>>());
    let mut made: Vec<_> = made.iter().map(|((function, _), rows)| (*function, *rows)).collect();
    made.sort_unstable();
    for (function, rows) in made {
        let whole = renamed[function.0];
        if needed[whole.0] || graph.apply_of(whole).is_none() {
            continue;
        }
        if let Some(name) = graph.values[whole.0].name.take() {
            graph.values[rows.0].name = Some(name);
        }
    }
}

/// Leaves out the reading of rows of a gradient that has no others.
pub fn leave_out_read_gradients(graph: &mut Graph) {
    let stored = rows_stored(graph);
    let mut roots = Vec::new();
    find_roots(graph, &mut roots);
    let mut renamed: Vec<ValueId> = graph.ids().collect();
    let mut taken: BTreeSet<ValueId> = graph.gradients.iter().map(|(_, id)| *id).collect();
    for id in graph.ids() {
        let Some(apply) = graph.apply_of(id) else { continue };
        let Some((rows, by, RowUse::AsTheyAre)) = rows_read_as(graph, apply) else { continue };
        let given = renamed[rows.0];
        let same = graph.storage(id) == Storage::RowSparse
            && graph.storage(given) == Storage::RowSparse
            && graph.shape(id) == graph.shape(given)
            && graph.apply_of(given).is_some()
            && stored[given.0]
                .are_named_by(|id| id == by || roots[id.0].is_some() && roots[id.0] == roots[by.0]);
        if same && !(taken.contains(&id) && taken.contains(&given)) {
            if taken.contains(&id) {
                taken.insert(given);
            }
            renamed[id.0] = given;
        }
    }
    for value in &mut graph.values {
        if let Kind::Apply(apply) = &mut value.kind {
            apply.operands.iter_mut().for_each(|operand| *operand = renamed[operand.0]);
        }
    }
    for (_, gradient) in &mut graph.gradients {
        *gradient = renamed[gradient.0];
    }
}

/// For each value whether it is a function of a row_sparse parameter, and of other row_sparse
/// values, that acts within rows: of elements, of rows, or of the columns of them.
fn functions_of_tables(graph: &Graph) -> Vec<bool> {
    let mut functions: Vec<bool> = Vec::with_capacity(graph.values.len());
    for id in graph.ids() {
        let function = graph.apply_of(id).filter(|_| graph.storage(id) == Storage::RowSparse);
        let function = function.is_some_and(|apply| {
            let tables = tables_within(graph, id, apply);
            let is_table = |id: &ValueId| {
                functions[id.0] || matches!(graph.value(*id).kind, Kind::Parameter { .. })
            };
            let is_within = |id: &&ValueId| tables.contains(id);
            // What is read in another way as well is read as a whole.
            let otherwise = apply.operands.iter().filter(is_within).count() > tables.len();
            !otherwise && tables.iter().any(is_table)
        });
        functions.push(function);
    }
    functions
}

/// The row_sparse operands whose rows a result is computed from, each at its place.
fn tables_within(graph: &Graph, id: ValueId, apply: &Apply) -> Vec<ValueId> {
    let mut tables = within_rows(graph, id, apply);
    tables.retain(|operand| graph.storage(*operand) == Storage::RowSparse);
    tables
}

/// The function of a table that a value reads by rows, and what names the rows.
fn named_table(graph: &Graph, is_function: &[bool], id: ValueId) -> Option<(ValueId, ValueId)> {
    let apply = graph.apply_of(id)?;
    let (table, by) = named_rows(graph, apply)?;
    let once = apply.operands.iter().filter(|operand| **operand == table).count() == 1;
    (once && is_function[table.0]).then_some((table, by))
}

struct FunctionOfRows<'a> {
    before: &'a Graph,
    is_function: &'a [bool],
    renamed: &'a [ValueId],
}

impl FunctionOfRows<'_> {
    /// Appends a function of the rows that `by` names.
    fn make(
        &self,
        graph: &mut Graph,
        function: ValueId,
        by: ValueId,
        place: Place,
        made: &mut HashMap<(ValueId, ValueId), ValueId>,
    ) -> Option<ValueId> {
        let before = self.before;
        let (values, mut said) = (graph.values.len(), Vec::new());
        let mut added = Vec::new();
        // The functions and tables that it is made of, operands first: deep nests are no deep
        // recursion.
        let mut parts = BTreeSet::from([function]);
        let mut stack = vec![function];
        while let Some(id) = stack.pop() {
            let tables = before.apply_of(id).map(|apply| tables_within(before, id, apply));
            let mut tables = tables.unwrap_or_default();
            tables.retain(|id| parts.insert(*id) && self.is_function[id.0]);
            stack.extend(tables);
        }
        for id in parts {
            if made.contains_key(&(id, by)) {
                continue;
            }
            let new = match before.apply_of(id) {
                Some(apply) if self.is_function[id.0] => {
                    let tables = tables_within(before, id, apply);
                    let operand = |operand: &ValueId| {
                        let rows = made.get(&(*operand, by)).filter(|_| tables.contains(operand));
                        rows.copied().unwrap_or(self.renamed[operand.0])
                    };
                    let operands = apply.operands.iter().map(operand).collect();
                    let Apply { operator, attributes, .. } = apply.clone();
                    let Value { place, .. } = *before.value(id);
                    derived(graph, operator.name, operands, attributes, place, &mut said)
                }
                _ => {
                    let by_ids = before.value(by).element.is_id();
                    let reader = Operator::reader_of_rows(by_ids)?.name;
                    let operands = vec![self.renamed[id.0], self.renamed[by.0]];
                    derived(graph, reader, operands, Attributes::default(), place, &mut said)
                }
            };
            made.insert((id, by), new);
            added.push((id, by));
        }
        let new = made.get(&(function, by)).copied();
        let fits = new.filter(|new| said.is_empty() && graph.storage(*new) == Storage::RowSparse);
        if fits.is_none() {
            graph.values.truncate(values);
            added.iter().for_each(|key| {
                made.remove(key);
            });
        }
        fits
    }
}

fn rename(graph: &mut Graph, renamed: &[ValueId]) {
    let new = |id: &mut ValueId| *id = renamed[id.0];
    graph.losses.iter_mut().for_each(new);
    graph.outputs.iter_mut().for_each(|output| new(&mut output.value));
    graph.claims.iter_mut().for_each(|claim| new(&mut claim.value));
    graph.alternatives.iter_mut().for_each(|alternatives| new(&mut alternatives.value));
    for Update { state, value, .. } in &mut graph.updates {
        new(state);
        new(value);
    }
}
