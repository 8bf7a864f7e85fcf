//! Gradients of rows that are never made: what they would sum goes straight into the update.
//!
//! A `row_sparse` gradient is a sum of rows, each of which the batch names: by the columns of a
//! csr, or by ids. Where nothing else reads it, a training step need not bring those rows in order
//! first. Where moreover the forward pass reads the parameter by nothing but such rows, it reads
//! them where the update writes them, with the states of the rule beside.

use super::rows::{rows_added, rows_read_as};
use crate::ir::{Apply, Graph, ValueId};
use crate::operators::RowUse;
use crate::storage::Storage;
use std::collections::BTreeSet;

/// A parameter whose gradient is scattered into the update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scatter {
    /// The parameter.
    pub parameter: ValueId,
    /// What its gradient is the sum of, in order: values whose [`NamedRows`] are known.
    pub terms: Vec<ValueId>,
    /// The values that the step does not compute: the terms, and the sums of them.
    pub skipped: Vec<ValueId>,
    /// The values that read the parameter, if each of them reads rows that the batch names and
    /// nothing else does.
    pub lookups: Option<Vec<ValueId>>,
}

/// How a value names rows of a parameter, to read them or to add to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedRows {
    /// The columns of each row of a csr, each with its value: `dot(x, w)` and `dot(xᵀ, g)`.
    Product {
        /// The csr.
        csr: ValueId,
    },
    /// The columns of each row of a csr: `embedding_bag` and its gradient, with their attributes.
    Bags {
        /// The csr.
        bags: ValueId,
    },
    /// Ids of the batch: `embedding`, `take` and its gradient.
    Ids {
        /// The ids.
        ids: ValueId,
    },
    /// The columns of each row of a csr, in pairs: `pairwise_interaction` and its gradient.
    Pairs {
        /// The csr.
        csr: ValueId,
    },
}

/// Whether interactions of rows count as reads that name their rows. Kernels make the gradient of
/// an interaction whole; a row program does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairwise {
    Included,
    Excluded,
}

impl NamedRows {
    /// The rows that a value adds to as a term of a gradient, and what it adds.
    pub fn added(graph: &Graph, apply: &Apply) -> Option<(NamedRows, ValueId)> {
        let (by, added, what) = rows_added(graph, apply)?;
        let rows = NamedRows::of(what, by)?;
        (graph.storage(added) == Storage::Dense).then_some((rows, added))
    }

    /// The rows of a parameter that a value reads, where it reads it in no other way.
    pub fn read(graph: &Graph, apply: &Apply, parameter: ValueId) -> Option<NamedRows> {
        if apply.operands.iter().filter(|operand| **operand == parameter).count() != 1 {
            return None;
        }
        let (table, by, what) = rows_read_as(graph, apply)?;
        (table == parameter).then(|| NamedRows::of(what, by))?
    }

    /// The value that names the rows.
    pub fn by(self) -> ValueId {
        match self {
            NamedRows::Product { csr } | NamedRows::Pairs { csr } => csr,
            NamedRows::Bags { bags } => bags,
            NamedRows::Ids { ids } => ids,
        }
    }

    fn of(what: RowUse, by: ValueId) -> Option<NamedRows> {
        match what {
            RowUse::Product => Some(NamedRows::Product { csr: by }),
            RowUse::Bags => Some(NamedRows::Bags { bags: by }),
            RowUse::Each => Some(NamedRows::Ids { ids: by }),
            RowUse::Pairwise => Some(NamedRows::Pairs { csr: by }),
            RowUse::AsTheyAre | RowUse::Otherwise => None,
        }
    }
}

/// The parameters whose gradients are scattered, in the order of the gradients.
pub(super) fn scatter(graph: &Graph, pairwise: Pairwise) -> Vec<Scatter> {
    // Sums of halves are rounded where they are stored.
    if graph.element().is_half() {
        return Vec::new();
    }
    let (users, gradients) = (Users::of(graph), graph.gradients.iter());
    gradients
        .filter_map(|(parameter, gradient)| {
            let mut scatter = of_gradient(graph, &users, *parameter, *gradient)?;
            if pairwise == Pairwise::Excluded {
                let is_pairs = |rows| matches!(rows, Some(NamedRows::Pairs { .. }));
                let added = |id: &ValueId| Some(NamedRows::added(graph, graph.apply_of(*id)?)?.0);
                let read = |id: &ValueId| NamedRows::read(graph, graph.apply_of(*id)?, *parameter);
                if scatter.terms.iter().any(|term| is_pairs(added(term))) {
                    return None;
                }
                scatter.lookups.take_if(|reads| reads.iter().any(|id| is_pairs(read(id))));
            }
            Some(scatter)
        })
        .collect()
}

/// Who reads each value.
struct Users {
    /// The values that read it, each once, in order.
    values: Vec<Vec<ValueId>>,
    /// How often they do.
    n_reads: Vec<usize>,
    is_output: Vec<bool>,
    /// How many parameters it is the gradient of.
    n_gradients: Vec<usize>,
}

impl Users {
    fn of(graph: &Graph) -> Self {
        let n = graph.values.len();
        let (mut values, mut n_reads) = (vec![Vec::new(); n], vec![0; n]);
        for id in graph.ids() {
            for operand in graph.apply_of(id).into_iter().flat_map(|apply| &apply.operands) {
                n_reads[operand.0] += 1;
                if values[operand.0].last() != Some(&id) {
                    values[operand.0].push(id);
                }
            }
        }
        let (mut is_output, mut n_gradients) = (vec![false; n], vec![0; n]);
        graph.outputs.iter().for_each(|output| is_output[output.value.0] = true);
        graph.gradients.iter().for_each(|(_, gradient)| n_gradients[gradient.0] += 1);
        Users { values, n_reads, is_output, n_gradients }
    }
}

fn of_gradient(
    graph: &Graph,
    users: &Users,
    parameter: ValueId,
    gradient: ValueId,
) -> Option<Scatter> {
    // Weights in a dense declaration are read and updated as a whole.
    if graph.storage(parameter) != Storage::RowSparse {
        return None;
    }
    let mut scatter = Scatter { parameter, terms: Vec::new(), skipped: Vec::new(), lookups: None };
    if users.n_gradients[gradient.0] != 1 || !add_terms(graph, users, gradient, &mut scatter) {
        return None;
    }
    let skipped: BTreeSet<ValueId> = scatter.skipped.iter().copied().collect();
    let readers = users.values[parameter.0].iter().copied();
    let mut readers = readers.filter(|id| !skipped.contains(id));
    let lookups = readers.try_fold(Vec::new(), |mut lookups, id| {
        NamedRows::read(graph, graph.apply_of(id)?, parameter)?;
        lookups.push(id);
        Some(lookups)
    });
    scatter.lookups = lookups;
    Some(scatter)
}

/// Adds the terms of a sum, in order; false where there is something else in it, or where others
/// read it. Without recursion: a sum is as deep as it has terms.
fn add_terms(graph: &Graph, users: &Users, sum: ValueId, scatter: &mut Scatter) -> bool {
    let mut next = vec![sum];
    while let Some(id) = next.pop() {
        let Some(apply) = graph.apply_of(id) else {
            return false;
        };
        if graph.storage(id) != Storage::RowSparse
            || graph.shape(id) != graph.shape(scatter.parameter)
            || users.is_output[id.0]
            || users.n_reads[id.0] != usize::from(id != sum)
        {
            return false;
        }
        scatter.skipped.push(id);
        if apply.operator.is_sum {
            next.extend(apply.operands.iter().rev());
            continue;
        }
        scatter.terms.push(id);
        if NamedRows::added(graph, apply).is_none() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::ir::parse;

    fn run(text: &str) -> Vec<(String, Vec<String>, Option<usize>)> {
        let compiled = compile(parse(text).unwrap());
        assert!(compiled.errors().next().is_none(), "{:?}", compiled.diagnostics);
        let graph = &compiled.graph;
        let named = |scatter: Scatter| {
            let terms = scatter.terms.iter().filter_map(|term| graph.apply_of(*term));
            let terms = terms.map(|apply| apply.operator.name.to_owned()).collect();
            (graph.label(scatter.parameter), terms, scatter.lookups.map(|lookups| lookups.len()))
        };
        scatter(graph, Pairwise::Excluded).into_iter().map(named).collect()
    }

    const DATA: &str = "\
model M f32
x = input csr f32 [n, d]
z = input csr f32 [n, d]
u = input dense u32 [n]
y = label dense f32 [n, 1]
w = param row_sparse f32 [d, 1] \"\"
";

    #[test]
    fn rows_are_named_by_columns_and_ids() {
        let found = run(&format!(
            "{DATA}t = param row_sparse f32 [d, 2] \"\"\ne = param row_sparse f32 [m, 2] \"\"\n\
             h = param dense f32 [2, 1] \"\"\na = dot(x, w)\nb = embedding_bag(x, t)\nc = take(e, u)\n\
             s = add(b, c)\nk = dot(s, h)\np = add(a, k)\nl = squared_error(p, y)\nloss l"
        ));
        let parts = |name: &str, term: &str| (name.to_owned(), vec![term.to_owned()], Some(1));
        assert_eq!(
            found,
            [parts("w", "dot"), parts("t", "embedding_bag_gradient"), parts("e", "take_gradient")]
        );
    }

    #[test]
    fn a_parameter_read_twice_has_two_terms() {
        let found = run(&format!(
            "{DATA}a = dot(x, w)\nb = dot(z, w)\np = add(a, b)\nl = squared_error(p, y)\nloss l"
        ));
        assert_eq!(found, [("w".to_owned(), vec!["dot".to_owned(); 2], Some(2))]);
    }

    #[test]
    fn a_parameter_that_is_read_as_a_whole_has_no_lookups() {
        let found = run(&format!(
            "{DATA}a = dot(x, w)\nv = dense(w)\nk = sum(v)\nm = stop_gradient(k)\np = add(a, m)\n\
             l = squared_error(p, y)\nloss l"
        ));
        assert_eq!(found, [("w".to_owned(), vec!["dot".to_owned()], None)]);
    }

    #[test]
    fn other_gradients_are_made() {
        let found =
            run(&format!("{DATA}k = square(w)\na = dot(x, k)\nl = squared_error(a, y)\nloss l"));
        assert_eq!(found, []);
    }
}
