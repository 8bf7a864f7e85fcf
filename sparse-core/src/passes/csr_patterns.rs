//! Sparsity patterns: where sparse values store elements, and where their gradients are read.
//!
//! Elements that a csr does not store are 0 by construction: no parameter changes them, so that
//! their gradients are multiplied by 0, or left out, further down. They need not be computed. A csr
//! that is the copy of a dense array is none of these: each of its elements has a gradient.

use super::instantiate::derived;
use super::row_places::Known;
use super::rows::store_every_row;
use crate::diagnostics::Diagnostic;
use crate::ir::{Apply, Attributes, Graph, Place, ValueId};
use crate::operators::DeclaredKernel;
use crate::operators::{BinaryFamily, CsrPattern, Kind};
use crate::storage::{ElementType, Storage};
use std::collections::{BTreeMap, BTreeSet};

/// For each value, the csr value that stores the same places, if one is known: itself, or one that
/// it is computed from. `None` where places are left out by value, as a sum leaves out zeros. Added
/// to what is known of the values before.
pub(super) fn find_roots(graph: &Graph, roots: &mut Vec<Option<ValueId>>) {
    for id in graph.ids().skip(roots.len()) {
        let root = match graph.apply_of(id) {
            None => Some(id),
            Some(apply) => match rule_of(graph, id, apply) {
                Follows::Nothing | Follows::Operands(false) => Some(id),
                Follows::One(operand) => roots[operand.0],
                Follows::Either | Follows::Rows => None,
                Follows::Operands(true) => {
                    let csr = csr_operands(graph, apply);
                    csr.iter().all(|id| roots[id.0].is_some()).then_some(id)
                }
                Follows::Both => {
                    let csr = csr_operands(graph, apply).into_iter();
                    let of_operands: Option<BTreeSet<_>> = csr.map(|id| roots[id.0]).collect();
                    of_operands.map(|of| {
                        if of.len() == 1 { of.first().copied().unwrap_or(id) } else { id }
                    })
                }
            },
        };
        roots.push(root);
    }
}

/// How a csr result stores what its operands store.
enum Follows {
    /// In a way that is not known.
    Nothing,
    /// In a way that follows from its csr operands, if it has such.
    Operands(bool),
    /// The places of this operand.
    One(ValueId),
    /// The places that both of its operands store.
    Both,
    /// The places that one of its operands stores, but for zeros.
    Either,
    /// The rows that a row_sparse operand stores, but for zeros.
    Rows,
}

fn csr_operands(graph: &Graph, apply: &Apply) -> Vec<ValueId> {
    let is_csr = |(index, id): &(usize, &ValueId)| {
        graph.storage(**id) == Storage::Csr && !apply.operator.lends_shape_only(*index)
    };
    apply.operands.iter().enumerate().filter(is_csr).map(|(_, id)| *id).collect()
}

fn rule_of(graph: &Graph, id: ValueId, apply: &Apply) -> Follows {
    let csr = csr_operands(graph, apply);
    let as_large = |operand: &ValueId| graph.shape(*operand) == graph.shape(id);
    let each = |family: Option<BinaryFamily>| match csr.as_slice() {
        _ if !csr.iter().all(as_large) => Follows::Nothing,
        [one] => Follows::One(*one),
        [first, ..] => match family {
            Some(BinaryFamily::Union | BinaryFamily::Dense) => Follows::Either,
            Some(BinaryFamily::Left | BinaryFamily::SlopedGradient) => Follows::One(*first),
            _ => Follows::Both,
        },
        [] => Follows::Nothing,
    };
    match apply.operator.kind {
        Kind::Unary(_) | Kind::Declared(_, DeclaredKernel::Each) => each(None),
        Kind::Binary(family, _) => each(Some(family)),
        // A function of the user's is taken to store what its csr operands let it.
        Kind::Declared(_, DeclaredKernel::OfRule) => {
            let dense = |id: &&ValueId| graph.storage(**id) != Storage::Csr && as_large(id);
            if apply.operands.iter().any(|id| dense(&id)) {
                Follows::Nothing
            } else {
                Follows::Operands(!csr.is_empty())
            }
        }
        _ => match apply.operator.csr_pattern {
            CsrPattern::Unknown | CsrPattern::EveryRow | CsrPattern::Ids(_) => Follows::Nothing,
            CsrPattern::OfOperands => Follows::Operands(!csr.is_empty()),
            CsrPattern::Operand(name) => {
                let index = apply.operator.operand_index(name);
                let operand = index.and_then(|index| apply.operands.get(index)).copied();
                let known = |id: &ValueId| {
                    // The ones of a pattern are written out in a csr of their own.
                    graph.storage(*id) == Storage::Csr
                        && graph.value(*id).element != ElementType::Unit
                };
                let rows = |id: &ValueId| graph.storage(*id) == Storage::RowSparse;
                match operand {
                    Some(operand) if known(&operand) => Follows::One(operand),
                    Some(operand) if rows(&operand) => Follows::Rows,
                    _ => Follows::Nothing,
                }
            }
        },
    }
}

/// Csr values that together store some places.
type Cover = BTreeSet<StoredPlaces>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StoredPlaces {
    /// What a value stores.
    Of(ValueId),
    /// What the operator of a value makes of the places of its operands, where the operands leave
    /// out zeros.
    Moved(ValueId),
}

/// Where the gradients of the sparse values of a graph are read.
pub(super) struct GradientPlaces {
    roots: Vec<Option<ValueId>>,
    /// For each value that is a row_sparse one whose gradient is read at some rows only, whether it
    /// stores all of these.
    at_rows: Vec<Option<bool>>,
    /// For each value that is a csr computed from a parameter, where it can be told.
    needed: Vec<Option<Cover>>,
    /// The patterns made so far.
    made: BTreeMap<Cover, ValueId>,
}

impl GradientPlaces {
    /// Of all values; `reaches` says which are computed from what is trained.
    pub(super) fn of(graph: &Graph, reaches: &[bool]) -> Self {
        let mut roots = Vec::with_capacity(reaches.len());
        find_roots(graph, &mut roots);
        let mut every_row = Vec::with_capacity(reaches.len());
        store_every_row(graph, &mut every_row);
        let mut needed: Vec<Option<Cover>> = Vec::with_capacity(reaches.len());
        let mut at_rows: Vec<Option<bool>> = Vec::with_capacity(reaches.len());
        for id in graph.ids() {
            let apply = graph.apply_of(id).filter(|_| reaches[id.0]);
            let is = |storage| apply.filter(|_| graph.storage(id) == storage);
            let at_places = |id: ValueId| needed[id.0].is_some() || at_rows[id.0].is_some();
            let known = Known { reaches, at_places: &at_places, every_row: &every_row };
            let rows = is(Storage::RowSparse).filter(|apply| known.at_rows(graph, id, apply));
            // A csr that leaves out zeros stores less than where its gradient is read.
            let is_whole = |id: &ValueId| match graph.storage(*id) {
                Storage::Csr => !reaches[id.0] || roots[id.0].is_some(),
                _ => at_rows[id.0].unwrap_or(true),
            };
            let rows = rows.map(|apply| apply.operands.iter().all(is_whole));
            let cover = is(Storage::Csr).and_then(|apply| match rule_of(graph, id, apply) {
                Follows::Rows => {
                    let rows = apply.operands.first().filter(|rows| at_rows[rows.0].is_some());
                    rows.map(|_| BTreeSet::from([StoredPlaces::Moved(id)]))
                }
                _ => places(graph, id, apply, reaches, &needed, &roots),
            });
            at_rows.push(rows);
            needed.push(cover);
        }
        GradientPlaces { roots, at_rows, needed, made: BTreeMap::new() }
    }

    /// Whether the gradient of a value is read at some places only.
    pub(super) fn are_known(&self, id: ValueId) -> bool {
        self.needed.get(id.0).is_some_and(Option::is_some)
            || self.at_rows.get(id.0).is_some_and(Option::is_some)
    }

    /// A sparse value that stores the places where the gradient of a value is read, or more;
    /// appended where there is none. `None` where it is read everywhere.
    pub(super) fn pattern(
        &mut self,
        graph: &mut Graph,
        id: ValueId,
        place: Place,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<ValueId> {
        let cover = match *self.at_rows.get(id.0)? {
            Some(true) => return Some(id),
            Some(false) => BTreeSet::from([StoredPlaces::Moved(id)]),
            None => self.needed.get(id.0)?.clone()?,
        };
        Some(self.make(graph, &cover, place, diagnostics))
    }

    fn make(
        &mut self,
        graph: &mut Graph,
        cover: &Cover,
        place: Place,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> ValueId {
        if let Some(made) = self.made.get(cover) {
            return *made;
        }
        let mut sum: Option<ValueId> = None;
        for part in cover {
            let values = match *part {
                StoredPlaces::Of(id) => id,
                StoredPlaces::Moved(id) => self.moved(graph, id, place, diagnostics),
            };
            if cover.len() == 1 {
                sum = Some(values);
                break;
            }
            let none = Attributes::default;
            let ones = derived(graph, "pattern", vec![values], none(), place, diagnostics);
            sum = Some(match sum {
                Some(sum) => derived(graph, "add", vec![sum, ones], none(), place, diagnostics),
                None => ones,
            });
        }
        let made = sum.unwrap_or(ValueId(0));
        self.made.insert(cover.clone(), made);
        made
    }

    /// The operator of a value, applied to the places of its operands.
    fn moved(
        &mut self,
        graph: &mut Graph,
        id: ValueId,
        place: Place,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> ValueId {
        let Some(mut apply) = graph.apply_of(id).cloned() else { return id };
        for operand in &mut apply.operands {
            if graph.storage(*operand) == Storage::RowSparse {
                let rows = self.pattern(graph, *operand, place, diagnostics);
                let (rows, none) = (vec![rows.unwrap_or(*operand)], Attributes::default());
                *operand = derived(graph, "pattern", rows, none, place, diagnostics);
            } else if graph.storage(*operand) == Storage::Csr {
                let known = self.needed.get(operand.0).cloned().flatten();
                let cover = known.unwrap_or_else(|| cover(graph, *operand, &self.roots));
                *operand = self.make(graph, &cover, place, diagnostics);
            }
        }
        let Apply { operator, operands, attributes, .. } = apply;
        derived(graph, operator.name, operands, attributes, place, diagnostics)
    }
}

/// Where the gradient of a computed csr is read, given where those of its operands are.
fn places(
    graph: &Graph,
    id: ValueId,
    apply: &Apply,
    reaches: &[bool],
    needed: &[Option<Cover>],
    roots: &[Option<ValueId>],
) -> Option<Cover> {
    let csr = csr_operands(graph, apply);
    let (trained, data): (Vec<ValueId>, Vec<ValueId>) =
        csr.iter().partition(|operand| reaches[operand.0]);
    let of_trained = trained.iter().map(|operand| needed[operand.0].clone());
    let of_trained: Vec<Cover> = of_trained.collect::<Option<_>>()?;
    let by_dense = apply.operands.iter().enumerate().any(|(index, operand)| {
        reaches[operand.0]
            && graph.storage(*operand) != Storage::Csr
            && !apply.operator.lends_shape_only(index)
    });
    let all =
        |csr: &[ValueId]| csr.iter().flat_map(|id| cover(graph, *id, roots)).collect::<Cover>();
    let joined = || of_trained.iter().flatten().copied().collect::<Cover>();
    match rule_of(graph, id, apply) {
        Follows::Nothing | Follows::Rows | Follows::Operands(false) => None,
        Follows::Operands(true) => Some(BTreeSet::from([match roots[id.0] {
            Some(root) => StoredPlaces::Of(root),
            None => StoredPlaces::Moved(id),
        }])),
        Follows::One(operand) if by_dense || trained.is_empty() => {
            Some(joined().into_iter().chain(cover(graph, operand, roots)).collect())
        }
        Follows::Both if data.is_empty() => Some(match roots[id.0] {
            Some(root) => BTreeSet::from([StoredPlaces::Of(root)]),
            None => joined(),
        }),
        _ if by_dense => Some(joined().into_iter().chain(all(&csr)).collect()),
        _ => Some(joined()),
    }
}

/// Csr values that store every place where a value stores something, or has left out a zero.
fn cover(graph: &Graph, id: ValueId, roots: &[Option<ValueId>]) -> Cover {
    let mut parts = Cover::new();
    let (mut stack, mut seen) = (vec![id], BTreeSet::new());
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        if let Some(root) = roots[id.0] {
            parts.insert(StoredPlaces::Of(root));
            continue;
        }
        let Some(apply) = graph.apply_of(id) else { continue };
        match rule_of(graph, id, apply) {
            Follows::One(operand) => stack.push(operand),
            Follows::Both | Follows::Either => stack.extend(csr_operands(graph, apply)),
            Follows::Nothing | Follows::Rows | Follows::Operands(_) => {
                parts.insert(StoredPlaces::Moved(id));
            }
        }
    }
    parts
}
