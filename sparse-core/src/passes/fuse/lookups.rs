//! Terms of rows that ids name: embeddings of one number, and inner products of two.

use super::{Term, Terms};
use crate::ir::{Apply, Graph, Kind, ValueId};
use crate::operators::{Placement, RowUse, Total};
use crate::passes::rows::{rows_added, rows_read_as};
use crate::shapes::Dim;
use crate::storage::Storage;

/// A term that reads the rows which ids of the batch name.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// Its value, one number a row of data.
    pub term: Term,
    /// What is read.
    pub read: LookupRead,
}

/// A trained parameter and the ids that name its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedRow {
    /// The parameter.
    pub table: ValueId,
    /// The ids: one for each row of data.
    pub ids: ValueId,
}

/// What a lookup reads.
#[derive(Clone, Debug, PartialEq)]
pub enum LookupRead {
    /// A row of one element: `take(bias, ids)`.
    Element(NamedRow),
    /// The inner product of two rows: `sum(take(p, users) * take(q, items), axis = 1)`, or the mean
    /// of what that sums.
    Inner {
        /// One row.
        left: NamedRow,
        /// The other, of another parameter.
        right: NamedRow,
        /// The elements of each.
        size: Dim,
        /// Whether it is the mean.
        mean: bool,
    },
}

impl LookupRead {
    /// The parameters with their ids.
    pub fn rows(&self) -> impl Iterator<Item = NamedRow> + use<> {
        let (first, second) = match self {
            LookupRead::Element(row) => (*row, None),
            LookupRead::Inner { left, right, .. } => (*left, Some(*right)),
        };
        std::iter::once(first).chain(second)
    }
}

/// The terms of a graph, and where they are.
pub(super) struct Found {
    pub(super) terms: Terms,
    /// A value of the shape of the terms.
    pub(super) space: ValueId,
    /// The values that the terms and their gradients make unnecessary.
    pub(super) inside: Vec<ValueId>,
}

/// The lookups of a graph whose parameters are each read once.
pub(super) fn find_lookups(graph: &Graph) -> Result<Found, String> {
    let (mut lookups, mut inside) = (Vec::new(), Vec::new());
    for id in graph.ids() {
        if let Some(apply) = graph.apply_of(id)
            && let Some((read, values)) = read_by(graph, id, apply)
        {
            inside.extend(values);
            let term = Term { value: id, gradient: gradient(graph, id, &read, &mut inside)? };
            lookups.push(Lookup { term, read });
        }
    }
    let Some(first) = lookups.first() else {
        return Err("no product of a csr input with a trained parameter".into());
    };
    let space = first.term.value;
    if lookups.iter().any(|lookup| graph.shape(lookup.term.value) != graph.shape(space)) {
        return Err("rows named by ids are read in several shapes".into());
    }
    let mut sizes = lookups.iter().filter_map(|lookup| match &lookup.read {
        LookupRead::Inner { size, .. } => Some(size),
        LookupRead::Element(_) => None,
    });
    let first = sizes.next();
    if sizes.any(|size| Some(size) != first) {
        return Err("the inner products are of rows of several sizes".into());
    }
    if let Some(output) = graph.outputs.iter().find(|output| inside.contains(&output.value)) {
        return Err(format!("the output `{}` is not a number a row", output.name));
    }
    Ok(Found { terms: Terms::Lookups(lookups), space, inside })
}

/// What a value reads if it is a lookup, and the values in it.
fn read_by(graph: &Graph, id: ValueId, apply: &Apply) -> Option<(LookupRead, Vec<ValueId>)> {
    let is_number = matches!(&graph.shape(id)[..], [_] | [_, Dim::Size(1)]);
    match row(graph, id) {
        Some(row) if is_number => Some((LookupRead::Element(row), Vec::new())),
        None if is_number => inner(graph, id, apply),
        _ => None,
    }
}

/// `sum(take(p, users) * take(q, items), axis = 1)` of two parameters, or the `mean`, and the
/// values in it.
fn inner(graph: &Graph, id: ValueId, apply: &Apply) -> Option<(LookupRead, Vec<ValueId>)> {
    let &[products] = &apply.operands[..] else { return None };
    let (shape, of_sum) = (graph.shape(products), graph.shape(id));
    let [rows, size] = &shape[..] else { return None };
    let of_products = graph.apply_of(products).filter(|it| it.operator.is_product)?;
    let &[lhs, rhs] = &of_products.operands[..] else { return None };
    let (left, right) = (row(graph, lhs)?, row(graph, rhs)?);
    // The sum over the columns is known by what it leaves.
    let mean = apply.operator.total()? == Total::Mean;
    let over_columns = of_sum[0] == *rows && rows != size;
    let apart = left.table != right.table && graph.shape(lhs) == graph.shape(rhs);
    let read = LookupRead::Inner { left, right, size: size.clone(), mean };
    (over_columns && apart).then(|| (read, vec![products, lhs, rhs]))
}

/// The rows of a trained row_sparse parameter that a value is, one for each id.
fn row(graph: &Graph, id: ValueId) -> Option<NamedRow> {
    let apply = graph.apply_of(id)?;
    let (table, ids, RowUse::Each) = rows_read_as(graph, apply)? else { return None };
    let trained = matches!(graph.value(table).kind, Kind::Parameter { frozen: false, .. });
    let is_vector = graph.shape(ids).len() == 1;
    (trained && is_vector && graph.storage(table) == Storage::RowSparse)
        .then_some(NamedRow { table, ids })
}

/// The gradient with respect to a lookup, of which those of the parameters are made; the values
/// between are `inside`.
fn gradient(
    graph: &Graph,
    lookup: ValueId,
    read: &LookupRead,
    inside: &mut Vec<ValueId>,
) -> Result<ValueId, String> {
    let mut gradient = None;
    for row in read.rows() {
        let found = gradient_by(graph, row, read, inside)
            .filter(|found| graph.shape(*found) == graph.shape(lookup))
            .filter(|found| gradient.is_none_or(|known| known == *found));
        gradient = found;
        if found.is_none() {
            return Err(format!(
                "`{}` is read in other ways than as `{}`",
                graph.label(row.table),
                graph.label(lookup)
            ));
        }
    }
    gradient.ok_or_else(|| "nothing is read".into())
}

/// The gradient with respect to a lookup that the gradient of one of its parameters is made of.
fn gradient_by(
    graph: &Graph,
    named: NamedRow,
    read: &LookupRead,
    inside: &mut Vec<ValueId>,
) -> Option<ValueId> {
    let (_, gradient) = graph.gradients.iter().find(|(parameter, _)| *parameter == named.table)?;
    let added = rows_added(graph, graph.apply_of(*gradient)?)?;
    let (ids, summed, RowUse::Each) = added else { return None };
    if ids != named.ids {
        return None;
    }
    inside.push(*gradient);
    let LookupRead::Inner { left, right, mean, .. } = read else {
        return Some(summed);
    };
    // The gradient of the inner product, or its share, in every column, times the other row.
    let other = Some(if left.table == named.table { *right } else { *left });
    let of_summed = graph.apply_of(summed).filter(|it| it.operator.is_product)?;
    let &[lhs, rhs] = &of_summed.operands[..] else { return None };
    let wide = match (row(graph, lhs) == other, row(graph, rhs) == other) {
        (_, true) => lhs,
        (true, _) => rhs,
        _ => return None,
    };
    let of_wide = graph.apply_of(wide)?;
    if of_wide.operator.placement != Placement::RepeatedLike {
        return None;
    }
    inside.extend([summed, wide]);
    (of_wide.attributes.flag("mean") == *mean).then(|| of_wide.operands[0])
}
