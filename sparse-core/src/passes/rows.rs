//! Which rows of which parameter a batch reads and writes: what exact updates settle, what stores pull and push.

use crate::ir::{Apply, Graph, Kind, ValueId};
use crate::operators::{self, Operator};
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
}

/// The rows that a batch reads and writes, for each parameter in the order of declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The parameter.
    pub parameter: ValueId,
    /// The rows that the forward pass reads. Empty where nothing does.
    pub reads: RowSet,
    /// The rows that the gradient stores; `None` without a gradient.
    pub writes: Option<RowSet>,
}

/// Derives the rows from the graph.
pub fn rows(graph: &Graph) -> Vec<Rows> {
    graph
        .parameters()
        .map(|parameter| {
            let reads = graph
                .ids()
                .filter_map(|id| rows_read_by(graph, id, parameter))
                .fold(RowSet::Columns(BTreeSet::new()), RowSet::union);
            let writes = graph
                .gradients
                .iter()
                .find(|(known, _)| *known == parameter)
                .map(|(_, gradient)| rows_stored(graph, *gradient));
            Rows { parameter, reads, writes }
        })
        .collect()
}

/// The rows of a parameter that one operator reads.
fn rows_read_by(graph: &Graph, id: ValueId, parameter: ValueId) -> Option<RowSet> {
    let apply = graph.apply_of(id)?;
    if !apply.operands.contains(&parameter) {
        return None;
    }
    let mut operands = apply.operands.iter().enumerate();
    if operands.all(|(at, id)| *id != parameter || apply.operator.lends_shape_only(at)) {
        return None;
    }
    if let Some(ids) = ids_of_rows(graph, apply) {
        return Some(RowSet::Columns(BTreeSet::from([ids])));
    }
    let turned = |flag| apply.attributes.flag(flag);
    // The operand whose columns name the rows of the second one.
    let names = match apply.operator.name {
        "dot" if !turned("transpose_lhs") && !turned("transpose_rhs") => Some(0),
        "embedding_bag" => Some(0),
        "pairwise_interaction" | "pairwise_interaction_gradient" | "pairwise_interaction_slope" => {
            Some(0)
        }
        "sampled_dot" if turned("transpose_rhs") => Some(2),
        _ => None,
    };
    let names = names.map(|operand| apply.operands[operand]);
    let named = |id: &ValueId| graph.storage(*id) == Storage::Csr;
    Some(match names.filter(named) {
        Some(names) if apply.operands[1] == parameter && apply.operands[0] != parameter => {
            RowSet::Columns(BTreeSet::from([names]))
        }
        _ => RowSet::All,
    })
}

/// The rows that a value stores: all of a dense one.
pub fn rows_stored(graph: &Graph, id: ValueId) -> RowSet {
    if graph.storage(id) != Storage::RowSparse {
        return RowSet::All;
    }
    let Some(apply) = graph.apply_of(id) else {
        return RowSet::All;
    };
    let lhs = apply.operands[0];
    match apply.operator.name {
        "dot" if apply.attributes.flag("transpose_lhs") && graph.storage(lhs) == Storage::Csr => {
            RowSet::Columns(BTreeSet::from([lhs]))
        }
        "embedding_bag_gradient" | "pairwise_interaction_gradient" => {
            RowSet::Columns(BTreeSet::from([lhs]))
        }
        "take_gradient" => match ids_of_rows(graph, apply) {
            Some(ids) => RowSet::Columns(BTreeSet::from([ids])),
            None => RowSet::All,
        },
        "add" | "subtract" => rows_stored(graph, lhs).union(rows_stored(graph, apply.operands[1])),
        _ if !keeps_rows(apply.operator) => RowSet::All,
        _ => apply
            .operands
            .iter()
            .find(|operand| {
                graph.storage(**operand) == Storage::RowSparse
                    && !matches!(graph.value(**operand).kind, Kind::Parameter { .. })
            })
            .map_or(RowSet::All, |operand| rows_stored(graph, *operand)),
    }
}

/// The ids of the batch that an operator takes rows by, or adds to rows by.
fn ids_of_rows(graph: &Graph, apply: &Apply) -> Option<ValueId> {
    let (array, ids) = match apply.operator.name {
        "take" => (0, 1),
        "take_gradient" => (2, 1),
        "embedding" => (1, 0),
        _ => return None,
    };
    let (ids, rank) = (apply.operands[ids], graph.shape(apply.operands[array]).len());
    let axis = apply.operator.integer(&apply.attributes, "axis").unwrap_or(0);
    let as_they_are = !apply.attributes.flag("clip") && !apply.attributes.flag("wrap");
    let given = matches!(graph.value(ids).kind, Kind::Input | Kind::Label);
    (crate::shapes::place_of(axis, rank) == Some(0) && as_they_are && given).then_some(ids)
}

/// Whether a row_sparse result has the rows of a row_sparse operand: functions of elements and of rows.
fn keeps_rows(operator: &Operator) -> bool {
    !matches!(operator.kind, operators::Kind::Kernel)
        || ["row_sparse", "reduce_to", "broadcast_like", "zeros_like"].contains(&operator.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;
    use crate::passes::{differentiate, infer_shapes, infer_storage};

    #[test]
    fn linear_models_read_and_write_the_columns_of_the_batch() {
        let mut graph = parse(
            "model M f32\nx = input csr f32 [n, d]\nz = input csr f32 [n, d]\ny = label dense f32 [n, 1]\n\
             w = param row_sparse f32 [d, 1] \"\"\nb = param dense f32 [1] \"\"\n\
             s = dot(x, w)\nt = dot(z, w)\nu = add(s, t)\np = add(u, b)\nl = squared_error(p, y)\nloss l",
        )
        .unwrap();
        infer_shapes(&mut graph);
        infer_storage(&mut graph);
        differentiate(&mut graph);
        let rows = rows(&graph);
        let columns = RowSet::Columns(BTreeSet::from([ValueId(0), ValueId(1)]));
        assert_eq!(rows[0].reads, columns);
        assert_eq!(rows[0].writes, Some(columns));
        assert_eq!((&rows[1].reads, &rows[1].writes), (&RowSet::All, &Some(RowSet::All)));
    }
}
