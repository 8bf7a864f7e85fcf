//! Simplification: common subexpressions, rewrites of the [table](REWRITES), dead values.
//!
//! Invariant: a value keeps its shape, its storage type and its element type, and each output,
//! loss, update and gradient stays a value of its own. A rewrite that would change one of them is
//! not applied.

mod numbers;
mod pattern;
mod rewrites;
#[cfg(test)]
mod tests;

pub use rewrites::{Bits, REWRITES, Rewrite, Uses};

use super::instantiate::derived;
use crate::formula::{self, Formula};
use crate::ir::{Attributes, Graph, Kind, Update, Value, ValueId};
use crate::storage::{ElementType, Storage};
use pattern::{build, find};
use std::collections::HashMap;

/// Chains of rewrites longer than this are left as they are: each round is one pass over the graph.
const ROUNDS: usize = 16;

/// Simplifies a graph that inference and differentiation have gone through. Gives the rewrites that
/// were applied.
pub fn simplify(graph: &mut Graph) -> Vec<&'static Rewrite> {
    let rewrites: Vec<Parsed> = REWRITES.iter().filter_map(Parsed::of).collect();
    let mut applied = Vec::new();
    drop_unneeded(graph);
    for _ in 0..ROUNDS {
        let (before, earlier) = (graph.values.len(), applied.len());
        Round::new(graph, &rewrites).run(&mut applied);
        drop_unneeded(graph);
        if applied.len() == earlier && graph.values.len() == before {
            break;
        }
    }
    applied
}

/// Makes equal values one before gradients are taken: of a product that is written twice, the
/// gradients of both uses are added up before they go back through it, and not after.
pub fn merge_equal(graph: &mut Graph) {
    Round::new(graph, &[]).run(&mut Vec::new());
}

struct Parsed {
    row: &'static Rewrite,
    pattern: Formula,
    replacement: Formula,
}

impl Parsed {
    fn of(row: &'static Rewrite) -> Option<Parsed> {
        let pattern = formula::parse(row.pattern).ok()?;
        Some(Parsed { row, pattern, replacement: formula::parse(row.replacement).ok()? })
    }
}

/// What makes two values equal. The storage counts: an annotation may have asked for it.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Number(u64),
    Named(String),
    Apply(&'static str, Vec<ValueId>, Attributes, Storage, ElementType),
}

/// Who uses a value: nobody, one, operators of one name, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Users {
    None,
    One(&'static str),
    Alike(&'static str),
    Several,
}

impl Users {
    fn and(self, name: &'static str) -> Users {
        match self {
            Users::None => Users::One(name),
            Users::One(known) | Users::Alike(known) if known == name => Users::Alike(name),
            _ => Users::Several,
        }
    }
}

/// One pass over the values, which are appended to a new list.
struct Round<'a> {
    graph: &'a mut Graph,
    rewrites: &'a [Parsed],
    before: Graph,
    users: Vec<Users>,
    /// For each value of `before` whether it is an output, a loss or a gradient.
    placed_before: Vec<bool>,
    /// For each value of the new list whether it is one.
    placed: Vec<bool>,
    renamed: Vec<ValueId>,
    known: HashMap<Key, ValueId>,
}

impl<'a> Round<'a> {
    fn new(graph: &'a mut Graph, rewrites: &'a [Parsed]) -> Self {
        let before = graph.clone();
        graph.values.clear();
        let mut users = vec![Users::None; before.values.len()];
        for apply in before.ids().filter_map(|id| before.apply_of(id)) {
            for operand in &apply.operands {
                users[operand.0] = users[operand.0].and(apply.operator.name);
            }
        }
        let mut placed_before = vec![false; before.values.len()];
        roots(&before).for_each(|id| placed_before[id.0] = true);
        let (placed, renamed, known) = (Vec::new(), Vec::new(), HashMap::new());
        Round { graph, rewrites, before, users, placed_before, placed, renamed, known }
    }

    fn run(mut self, applied: &mut Vec<&'static Rewrite>) {
        for id in self.before.ids() {
            let new = match self.rewrite(id) {
                Some((new, row)) => {
                    applied.push(row);
                    new
                }
                None => self.keep(id),
            };
            self.placed.resize(self.graph.values.len(), false);
            self.placed[new.0] |= self.placed_before[id.0];
            self.renamed.push(new);
        }
        let renamed = self.renamed;
        rename_roots(self.graph, |id| renamed[id.0]);
        self.graph.claims.iter_mut().for_each(|claim| claim.value = renamed[claim.value.0]);
    }

    /// The first rewrite that applies to a value.
    fn rewrite(&mut self, id: ValueId) -> Option<(ValueId, &'static Rewrite)> {
        self.before.apply_of(id)?;
        let rewrites = self.rewrites;
        rewrites.iter().find_map(|Parsed { row, pattern, replacement }| {
            let found = find(&self.before, pattern, id)?;
            if !(row.when)(&self.before, &found, id)
                || !self.used_as_meant(row.uses, id, &found.inner)
            {
                return None;
            }
            let given = found.renamed(&self.renamed);
            let place = self.before.value(id).place;
            let new = self.try_build(id, |graph| {
                let mut diagnostics = Vec::new();
                let new = build(graph, replacement, &given, place, &mut diagnostics)?;
                diagnostics.is_empty().then_some(new)
            })?;
            Some((new, *row))
        })
    }

    fn used_as_meant(&self, uses: Uses, root: ValueId, inner: &[ValueId]) -> bool {
        let root = self.before.apply_of(root).map(|apply| apply.operator.name);
        let meant = |users| match (uses, users) {
            (Uses::One, Users::One(_)) => true,
            (Uses::Alike, Users::One(name) | Users::Alike(name)) => root == Some(name),
            _ => false,
        };
        uses == Uses::Any
            || inner.iter().all(|id| meant(self.users[id.0]) && !self.placed_before[id.0])
    }

    /// A value as it is, of operands that may have become others; or the one that is equal to it.
    fn keep(&mut self, id: ValueId) -> ValueId {
        let mut value = self.before.value(id).clone();
        let key = match &mut value.kind {
            Kind::Constant(number) => Key::Number(number.to_bits()),
            Kind::Named(formula) => Key::Named(formula.to_string()),
            Kind::Apply(apply) => {
                let operands = apply.operands.iter().map(|operand| self.renamed[operand.0]);
                let operands: Vec<ValueId> = operands.collect();
                let (operator, attributes) = (apply.operator, apply.attributes.clone());
                let place = value.place;
                // Of other operands, it may be one that building rewrites.
                if let Some(new) = self.try_build(id, |graph| {
                    let next = graph.values.len();
                    let new = graph.apply(operator, operands.clone(), attributes.clone(), place);
                    let built = graph.apply_of(new).filter(|_| new.0 >= next);
                    let as_it_is = built.is_some_and(|built| {
                        built.operands == operands && built.attributes == attributes
                    });
                    if as_it_is {
                        return None;
                    }
                    graph.values.truncate(next);
                    let (operands, attributes) = (operands.clone(), attributes.clone());
                    let mut diagnostics = Vec::new();
                    let name = operator.name;
                    let new = derived(graph, name, operands, attributes, place, &mut diagnostics);
                    diagnostics.is_empty().then_some(new)
                }) {
                    return new;
                }
                apply.operands.clone_from(&operands);
                let storage = self.before.storage(id);
                Key::Apply(operator.name, operands, attributes, storage, value.element)
            }
            _ => return self.graph.push(value),
        };
        if let Some(&equal) = self.known.get(&key)
            && !(self.placed_before[id.0] && self.placed[equal.0])
        {
            self.take_over(equal, &value);
            return equal;
        }
        let new = self.graph.push(value);
        self.known.entry(key).or_insert(new);
        new
    }

    /// Builds what is to take a value's place, and takes it back if it differs in type, has no
    /// place of its own or assumes of a constant what the source does not.
    fn try_build(
        &mut self,
        id: ValueId,
        make: impl FnOnce(&mut Graph) -> Option<ValueId>,
    ) -> Option<ValueId> {
        let (values, assumptions) = (self.graph.values.len(), self.graph.assumptions.len());
        let conditions = self.graph.conditions.len();
        let mark = self.graph.unify.mark();
        let made = make(self.graph);
        let assumes =
            self.graph.assumptions.len() > assumptions || self.graph.conditions.len() > conditions;
        let fits = made.filter(|new| {
            !assumes && self.same_type(id, *new) && self.may_become(id, *new, values)
        });
        let Some(new) = fits else {
            self.graph.values.truncate(values);
            self.graph.assumptions.truncate(assumptions);
            self.graph.conditions.truncate(conditions);
            // What an attempt found out of extents holds for the attempt alone.
            self.graph.unify.undo(mark);
            return None;
        };
        self.graph.unify.keep(mark);
        let value = self.before.value(id).clone();
        if new.0 >= values {
            let Value { name, annotation, inserted, .. } = value;
            let made = &mut self.graph.values[new.0];
            (made.name, made.annotation, made.inserted) = (name, annotation, inserted);
        } else {
            self.take_over(new, &value);
        }
        Some(new)
    }

    fn same_type(&self, id: ValueId, new: ValueId) -> bool {
        let (old, made) = (self.before.value(id), self.graph.value(new));
        !made.broken
            && old.element == made.element
            && old.storage == made.storage
            && self.before.shape(id) == self.graph.shape(new)
    }

    /// An output, a loss or a gradient is computed into a place of its own.
    fn may_become(&self, id: ValueId, new: ValueId, before: usize) -> bool {
        let own = self.graph.apply_of(new).is_some()
            && (new.0 >= before || !self.placed.get(new.0).is_some_and(|placed| *placed));
        !self.placed_before[id.0] || own
    }

    /// A value that exists stands for another one too: a name is kept where it has none.
    fn take_over(&mut self, id: ValueId, other: &Value) {
        let value = &mut self.graph.values[id.0];
        if let (Kind::Apply(_), Kind::Apply(_)) = (&value.kind, &other.kind) {
            value.name = value.name.take().or_else(|| other.name.clone());
            value.inserted &= other.inserted;
        }
    }
}

/// The values that others than values need.
pub(super) fn roots(graph: &Graph) -> impl Iterator<Item = ValueId> {
    let outputs = graph.outputs.iter().map(|output| output.value);
    let gradients = graph.gradients.iter().map(|(_, gradient)| *gradient);
    let updates = graph.updates.iter().map(|update| update.value);
    outputs.chain(graph.losses.iter().copied()).chain(updates).chain(gradients)
}

fn rename_roots(graph: &mut Graph, new: impl Fn(ValueId) -> ValueId) {
    graph.outputs.iter_mut().for_each(|output| output.value = new(output.value));
    graph.losses.iter_mut().for_each(|loss| *loss = new(*loss));
    for Update { state, value, .. } in &mut graph.updates {
        (*state, *value) = (new(*state), new(*value));
    }
    for (parameter, gradient) in &mut graph.gradients {
        (*parameter, *gradient) = (new(*parameter), new(*gradient));
    }
}

/// Drops values that no output, loss, update or gradient is computed from. Declarations stay: they
/// are the model's interface.
fn drop_unneeded(graph: &mut Graph) {
    let mut needed = graph.ancestors(roots(graph));
    for id in graph.inputs().chain(graph.parameters()) {
        needed[id.0] = true;
    }
    let mut renamed = vec![ValueId(0); needed.len()];
    for (id, mut value) in std::mem::take(&mut graph.values).into_iter().enumerate() {
        if !needed[id] {
            continue;
        }
        if let Kind::Apply(apply) = &mut value.kind {
            apply.operands.iter_mut().for_each(|operand| *operand = renamed[operand.0]);
        }
        renamed[id] = graph.push(value);
    }
    rename_roots(graph, |id| renamed[id.0]);
    graph.claims.retain(|claim| needed[claim.value.0]);
    graph.claims.iter_mut().for_each(|claim| claim.value = renamed[claim.value.0]);
}
