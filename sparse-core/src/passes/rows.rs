//! Table rows that a batch reads and writes: exact updates catch up on them, stores pull and push
//! them.

use crate::ir::{Apply, Graph, Kind, ValueId};
use crate::operators::{self, BinaryFamily, CsrPattern, ResultRows, RowNames, RowUse};
use crate::storage::Storage;
use std::collections::BTreeSet;

/// A set of rows of a parameter, known by where the ids come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowSet {
    /// Every row.
    All,
    /// The columns that occur in these csr values of the batch, or the ids in these arrays of ids.
    Columns(BTreeSet<ValueId>),
}

impl RowSet {
    fn union(self, other: RowSet) -> RowSet {
        match (self, other) {
            (RowSet::Columns(mut a), RowSet::Columns(b)) => {
                a.extend(b);
                RowSet::Columns(a)
            }
            _ => RowSet::All,
        }
    }

    /// Whether all of its rows are named by values for which `holds`.
    pub(super) fn are_named_by(&self, holds: impl Fn(ValueId) -> bool) -> bool {
        matches!(self, RowSet::Columns(values) if values.iter().all(|value| holds(*value)))
    }

    /// One of two sets that a third lies in: the one of fewer sources.
    fn fewer(self, other: RowSet) -> RowSet {
        match (&self, &other) {
            (RowSet::All, _) => other,
            (RowSet::Columns(a), RowSet::Columns(b)) if b.len() < a.len() => other,
            _ => self,
        }
    }
}

/// The rows that a batch reads and writes, for each parameter in the order of declaration. Columns
/// and ids are those of declared inputs, so that they are known before anything is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRows {
    /// The parameter.
    pub parameter: ValueId,
    /// The rows that a step reads. Empty where nothing does.
    pub reads: RowSet,
    /// The rows that the gradient stores, or some more; `None` without a gradient.
    pub writes: Option<RowSet>,
}

/// Derives the rows from the graph.
pub fn rows(graph: &Graph) -> Vec<TableRows> {
    let stored = rows_stored(graph);
    let mut reads = vec![RowSet::Columns(BTreeSet::new()); graph.values.len()];
    for apply in graph.ids().filter_map(|id| graph.apply_of(id)) {
        for operand in apply.operands.iter().copied().collect::<BTreeSet<_>>() {
            if matches!(graph.value(operand).kind, Kind::Parameter { .. })
                && let Some(rows) = rows_read_by(graph, apply, operand)
            {
                let before = std::mem::replace(&mut reads[operand.0], RowSet::All);
                reads[operand.0] = before.union(rows);
            }
        }
    }
    let rows_of = |parameter: ValueId| {
        let gradient = graph.gradients.binary_search_by_key(&parameter, |(known, _)| *known).ok();
        let writes = gradient.map(|index| stored[graph.gradients[index].1.0].clone());
        let of_inputs = |set| of_inputs(graph, set);
        let reads = std::mem::replace(&mut reads[parameter.0], RowSet::All);
        TableRows { parameter, reads: of_inputs(reads), writes: writes.map(of_inputs) }
    };
    graph.parameters().map(rows_of).collect()
}

/// The rows of a parameter that one operator reads.
fn rows_read_by(graph: &Graph, apply: &Apply, parameter: ValueId) -> Option<RowSet> {
    let mut operands = apply.operands.iter().enumerate();
    if operands.all(|(at, id)| *id != parameter || apply.operator.lends_shape_only(at)) {
        return None;
    }
    let ranks = ranks(graph, apply);
    let index = apply.operands.iter().position(|id| *id == parameter)?;
    let read = apply.operator.rows_read(index, &apply.attributes, &ranks);
    Some(match read.by.and_then(|by| names(graph, apply, by)) {
        Some(by) if once(apply, parameter) => RowSet::Columns(BTreeSet::from([by])),
        _ => RowSet::All,
    })
}

fn once(apply: &Apply, operand: ValueId) -> bool {
    apply.operands.iter().filter(|id| **id == operand).count() == 1
}

/// The operand that an operator reads by rows only, and the operand that names these: a csr by its
/// columns, or ids of the batch.
pub(super) fn named_rows(graph: &Graph, apply: &Apply) -> Option<(ValueId, ValueId)> {
    let (table, by, _) = rows_read_as(graph, apply)?;
    Some((table, by))
}

/// The same, and what is made of the rows.
pub(super) fn rows_read_as(graph: &Graph, apply: &Apply) -> Option<(ValueId, ValueId, RowUse)> {
    let ranks = ranks(graph, apply);
    let read = |(index, table): (usize, &ValueId)| {
        let read = apply.operator.rows_read(index, &apply.attributes, &ranks);
        Some((*table, names(graph, apply, read.by?)?, read.what))
    };
    apply.operands.iter().enumerate().find_map(read)
}

/// The rows that an operator adds to, where its result is row_sparse: what names them, what is
/// added, and how that is made.
pub(super) fn rows_added(graph: &Graph, apply: &Apply) -> Option<(ValueId, ValueId, RowUse)> {
    let ranks = ranks(graph, apply);
    match apply.operator.rows_of_result(&apply.attributes, &ranks) {
        ResultRows::Added { by, what, of, .. } => {
            let added = apply.operands.get(apply.operator.operand_index(of)?)?;
            Some((names(graph, apply, by)?, *added, what))
        }
        _ => None,
    }
}

/// The operands from whose rows alone an operator computes the rows of its row_sparse result, each
/// at the same place. Reading some rows commutes with it. Empty where it does not act so.
pub(super) fn within_rows(graph: &Graph, id: ValueId, apply: &Apply) -> Vec<ValueId> {
    let ranks = ranks(graph, apply);
    match apply.operator.rows_of_result(&apply.attributes, &ranks) {
        ResultRows::Within { of, .. } => {
            let rows = graph.shape(id).first().cloned();
            let operands = apply.operands.iter().enumerate();
            let operands = operands.filter(|(index, operand)| {
                of.contains(&apply.operator.operands[*index])
                    && !apply.operator.lends_shape_only(*index)
                    && graph.shape(**operand).first() == rows.as_ref()
            });
            operands.map(|(_, operand)| *operand).collect()
        }
        _ => Vec::new(),
    }
}

/// The ranks of an operator's operands.
pub(super) fn ranks(graph: &Graph, apply: &Apply) -> Vec<usize> {
    apply.operands.iter().map(|id| graph.shape(*id).len()).collect()
}

/// The operand that names rows, where a batch has it: a csr, or ids that are declared.
fn names(graph: &Graph, apply: &Apply, by: RowNames) -> Option<ValueId> {
    let id = *apply.operands.get(apply.operator.operand_index(by.operand())?)?;
    let known = match by {
        RowNames::Columns(_) => graph.storage(id) == Storage::Csr,
        RowNames::Ids(_) => {
            graph.value(id).element.is_id()
                && matches!(graph.value(id).kind, Kind::Input | Kind::Label)
        }
    };
    known.then_some(id)
}

/// The rows that each value stores: all of a dense one.
pub fn rows_stored(graph: &Graph) -> Vec<RowSet> {
    let mut sets = Vec::with_capacity(graph.values.len());
    for id in graph.ids() {
        let set = match graph.apply_of(id) {
            Some(apply) if graph.storage(id) == Storage::RowSparse => {
                rows_stored_by(graph, id, apply, &sets)
            }
            _ => RowSet::All,
        };
        sets.push(set);
    }
    sets
}

/// Whether each value is known to store something in every row of a table: a row_sparse parameter,
/// the csr that a dense matrix times a csr gives, and what functions of elements and rows make of
/// these alone. Added to what is known of the values before.
pub(super) fn store_every_row(graph: &Graph, every: &mut Vec<bool>) {
    for id in graph.ids().skip(every.len()) {
        let is_sparse = |id: &ValueId| graph.storage(*id) != Storage::Dense;
        let whole = match graph.apply_of(id) {
            _ if !is_sparse(&id) => false,
            Some(apply)
                if graph.storage(id) == Storage::Csr
                    && apply.operator.csr_pattern == CsrPattern::EveryRow =>
            {
                true
            }
            Some(apply) => {
                let operands = within_rows(graph, id, apply);
                let operands = operands.iter().filter(|id| is_sparse(id));
                let mut operands = operands.map(|id| every[id.0]).peekable();
                match apply.operator.kind {
                    operators::Kind::Binary(
                        BinaryFamily::Intersection | BinaryFamily::Gradient,
                        _,
                    ) => operands.peek().is_some() && operands.all(|whole| whole),
                    operators::Kind::Binary(BinaryFamily::Union, _) | operators::Kind::Kernel => {
                        operands.any(|whole| whole)
                    }
                    _ => operands.next().unwrap_or(false),
                }
            }
            None => {
                graph.storage(id) == Storage::RowSparse
                    && matches!(graph.value(id).kind, Kind::Parameter { .. })
            }
        };
        every.push(whole);
    }
}

/// The rows that a row_sparse result stores, from those of the values before.
fn rows_stored_by(graph: &Graph, id: ValueId, apply: &Apply, before: &[RowSet]) -> RowSet {
    let of = |id: ValueId| RowSet::Columns(BTreeSet::from([id]));
    match apply.operator.rows_of_result(&apply.attributes, &ranks(graph, apply)) {
        ResultRows::All | ResultRows::Moved(_) => RowSet::All,
        ResultRows::Like => {
            let like = apply.operator.operand_index("like");
            let like = like.and_then(|index| apply.operands.get(index));
            like.map_or(RowSet::All, |like| before[like.0].clone())
        }
        ResultRows::Nothing => RowSet::Columns(BTreeSet::new()),
        ResultRows::Read => named_rows(graph, apply).map_or(RowSet::All, |(_, by)| of(by)),
        ResultRows::Added { .. } => rows_added(graph, apply).map_or(RowSet::All, |(by, ..)| of(by)),
        ResultRows::Named(by) => names(graph, apply, by).map_or(RowSet::All, of),
        ResultRows::Within { .. } => {
            let sparse = |id: &&ValueId| graph.storage(**id) == Storage::RowSparse;
            let operands = within_rows(graph, id, apply);
            let mut stored = operands.iter().filter(sparse).map(|id| before[id.0].clone());
            let stored = match apply.operator.kind {
                operators::Kind::Binary(BinaryFamily::Intersection | BinaryFamily::Gradient, _) => {
                    stored.reduce(RowSet::fewer)
                }
                operators::Kind::Binary(BinaryFamily::Union, _) | operators::Kind::Kernel => {
                    stored.reduce(RowSet::union)
                }
                _ => stored.next(),
            };
            stored.unwrap_or(RowSet::All)
        }
    }
}

/// The same set by declared inputs; all rows where those do not tell.
fn of_inputs(graph: &Graph, set: RowSet) -> RowSet {
    let RowSet::Columns(values) = set else {
        return RowSet::All;
    };
    let (mut inputs, mut seen) = (BTreeSet::new(), values.clone());
    let mut stack: Vec<ValueId> = values.into_iter().collect();
    while let Some(id) = stack.pop() {
        let Some(apply) = graph.apply_of(id) else {
            inputs.insert(id);
            continue;
        };
        let Some(sources) = columns_from(graph, id, apply) else {
            return RowSet::All;
        };
        stack.extend(sources.into_iter().filter(|source| seen.insert(*source)));
    }
    RowSet::Columns(inputs)
}

/// The values among whose columns, or ids, the columns of a computed csr are.
fn columns_from(graph: &Graph, id: ValueId, apply: &Apply) -> Option<Vec<ValueId>> {
    let is_csr = |id: &ValueId| graph.storage(*id) == Storage::Csr;
    let operand = |name| apply.operands.get(apply.operator.operand_index(name)?).copied();
    let of_elements =
        matches!(apply.operator.kind, operators::Kind::Unary(_) | operators::Kind::Binary(..));
    let sources: Vec<ValueId> = match apply.operator.csr_pattern {
        CsrPattern::Ids(ids) => {
            let ids = operand(ids)?;
            return graph.apply_of(ids).is_none().then(|| vec![ids]);
        }
        CsrPattern::Operand(name) => operand(name).into_iter().filter(is_csr).collect(),
        _ if of_elements => apply.operands.iter().copied().filter(is_csr).collect(),
        _ => return None,
    };
    let width = |id: ValueId| graph.shape(id).last().cloned();
    let as_wide = sources.iter().all(|source| width(*source) == width(id));
    (is_csr(&id) && !sources.is_empty() && as_wide).then_some(sources)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;
    use crate::passes::{differentiate, infer_shapes, infer_storage};

    const DECLARED: &str = "model M f32\nx = input csr f32 [n, 9]\nz = input csr f32 [n, 9]\nids = input dense u64 [n]\n\
        y = label dense f32 [n, 1]\nw = param row_sparse f32 [9, 1] \"\"\n";

    /// The rows of `w`, and of what else is declared.
    fn rows_of(lines: &str) -> Vec<TableRows> {
        let mut graph = parse(&format!("{DECLARED}{lines}")).unwrap();
        for pass in [infer_shapes, infer_storage, differentiate] {
            let found = pass(&mut graph);
            let error = |found: &crate::diagnostics::Diagnostic| {
                found.code.severity() == crate::diagnostics::Severity::Error
            };
            assert!(!found.iter().any(error), "{found:?}");
        }
        rows(&graph)
    }

    fn columns<const N: usize>(inputs: [usize; N]) -> RowSet {
        RowSet::Columns(inputs.map(ValueId).into())
    }

    #[test]
    fn linear_models_read_and_write_the_columns_of_the_batch() {
        let rows = rows_of(
            "b = param dense f32 [1] \"\"\ns = dot(x, w)\nt = dot(z, w)\nu = add(s, t)\np = add(u, b)\n\
             l = squared_error(p, y)\nloss l",
        );
        assert_eq!((&rows[0].reads, &rows[0].writes), (&columns([0, 1]), &Some(columns([0, 1]))));
        assert_eq!((&rows[1].reads, &rows[1].writes), (&RowSet::All, &Some(RowSet::All)));
    }

    #[test]
    fn columns_of_computed_values_are_known_by_inputs_where_these_tell() {
        for (line, expected) in [
            ("u = tanh(x)", columns([0])),
            ("u = subtract(x, z)", columns([0, 1])),
            ("u = divide(x, 3)", columns([0])),
            ("u = one_hot(ids, depth = 9)", columns([2])),
            // What a dense value gives is known when it is there.
            ("v = dense(x)\nu = csr(v)", RowSet::All),
        ] {
            let rows = rows_of(&format!("{line}\ns = dot(u, w)\nl = squared_error(s, y)\nloss l"));
            assert_eq!((&rows[0].reads, &rows[0].writes), (&expected, &Some(expected.clone())));
        }
    }

    #[test]
    fn gradients_through_functions_of_a_table_keep_their_rows_and_zeros_have_none() {
        for (function, writes) in [
            ("sin(w)", columns([0])),
            ("square(w)", columns([0])),
            ("stop_gradient(w)", columns([])),
        ] {
            let lines = format!("u = {function}\ns = dot(x, u)\nl = squared_error(s, y)\nloss l");
            let rows = rows_of(&lines);
            assert_eq!((&rows[0].reads, &rows[0].writes), (&RowSet::All, &Some(writes)));
        }
    }

    /// Each value is used twice by the next.
    #[test]
    fn a_chain_takes_as_long_as_it_is() {
        let mut lines = String::from("h0 = tanh(x)\ng0 = tanh(w)\n");
        for line in 1..60 {
            let before = line - 1;
            lines += &format!("h{line} = multiply(h{before}, h{before})\n");
            lines += &format!("g{line} = add(g{before}, g{before})\n");
        }
        let rows = rows_of(&format!("{lines}s = dot(h59, w)\nl = squared_error(s, y)\nloss l"));
        assert_eq!(rows[0].writes, Some(columns([0])));
    }
}
