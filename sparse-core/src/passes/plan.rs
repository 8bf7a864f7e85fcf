//! The plan: the order of computation, the kernel and the buffer of every value.

use super::fuse::{Chains, Fusion};
use super::link::linked_score;
use crate::ir::{Graph, ValueId};
use crate::storage::{ElementType, Storage};
use std::collections::BTreeSet;

/// Where a computed value is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A buffer of the workspace, by position in [`Plan::buffers`].
    Buffer(usize),
    /// An output, by position in the graph's outputs.
    Output(usize),
    /// A gradient, by position in the graph's gradients.
    Gradient(usize),
}

/// A buffer of the workspace. Several values may use it, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The storage of its values.
    pub storage: Storage,
    /// Their element type.
    pub element: ElementType,
}

/// The plan of a model.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The workspace.
    pub buffers: Vec<Buffer>,
    /// For each value that is computed and stored, where it is written to. Those that a loop has on
    /// the way are not stored.
    pub destinations: Vec<Option<Destination>>,
    /// The values to compute for the outputs, in order.
    pub forward: Vec<ValueId>,
    /// The values to compute for the outputs and the loss, in order.
    pub loss: Vec<ValueId>,
    /// The values to compute for the outputs and the updates of states, in order: none where there
    /// are no states.
    pub forward_carrying: Vec<ValueId>,
    /// The values to compute for the outputs, the loss and the updates of states, in order: none
    /// where there are no states.
    pub loss_carrying: Vec<ValueId>,
    /// The values to compute for outputs, loss, updates of states and gradients, in order.
    pub all: Vec<ValueId>,
}

/// Plans a graph that inference and differentiation have gone through, and whose step was fused as
/// `fusion` says, its element-wise operators as `chains` says.
pub fn plan(graph: &Graph, fusion: &Fusion, chains: &Chains) -> Plan {
    let outputs = || graph.outputs.iter().map(|output| output.value);
    let losses = || graph.losses.iter().copied();
    let updates = || graph.updates.iter().map(|update| update.value);
    let schedule = |roots: &mut dyn Iterator<Item = ValueId>| -> Vec<ValueId> {
        let needed = graph.ancestors(roots);
        graph.ids().filter(|id| needed[id.0] && graph.apply_of(*id).is_some()).collect()
    };
    let mut plan = Plan {
        forward: schedule(&mut outputs()),
        loss: schedule(&mut outputs().chain(losses())),
        all: schedule(
            &mut outputs()
                .chain(losses())
                .chain(updates())
                .chain(graph.gradients.iter().map(|(_, gradient)| *gradient)),
        ),
        ..Plan::default()
    };
    if !graph.updates.is_empty() {
        plan.forward_carrying = schedule(&mut outputs().chain(updates()));
        plan.loss_carrying = schedule(&mut outputs().chain(losses()).chain(updates()));
    }
    assign_buffers(graph, fusion, chains, &mut plan);
    plan
}

/// The name of the kernel that computes a value: operator and rule, `dot_csr_dense`;
/// `dot_unit_dense` of a `csr<unit>`.
pub fn kernel_name(graph: &Graph, id: ValueId) -> Option<String> {
    let apply = graph.apply_of(id)?;
    let signature = apply.operator.storage.get(apply.rule?)?.signature();
    let is_unit = |operand: &ValueId| graph.value(*operand).element == ElementType::Unit;
    let for_units = apply.operands.iter().any(is_unit).then(|| signature.for_units()).flatten();
    let signature = for_units.unwrap_or(signature);
    Some(format!("{}_{}", apply.operator.name, signature.kernel(graph.storage(id))))
}

/// Linear scan over the whole order: a buffer is free again after the last use of its value.
fn assign_buffers(graph: &Graph, fusion: &Fusion, chains: &Chains, plan: &mut Plan) {
    plan.destinations = vec![None; graph.values.len()];
    let mut last_use = vec![0usize; graph.values.len()];
    // Users before their operands: that is how a value which a loop has on the way knows when the
    // loop runs.
    let mut computed_at = vec![0usize; graph.values.len()];
    for (step, id) in plan.all.iter().enumerate().rev() {
        let result = chains.result_beyond(*id);
        let step = result.map_or(step, |result| computed_at[result.0]);
        computed_at[id.0] = step;
        for operand in graph.apply_of(*id).into_iter().flat_map(|apply| &apply.operands) {
            last_use[operand.0] = last_use[operand.0].max(step);
        }
    }
    // What the update of parameters reads, after everything else, and what states become.
    let terms = fusion.scattered().iter().flat_map(|scatter| &scatter.terms);
    let operands = terms.filter_map(|term| graph.apply_of(*term)).flat_map(|apply| &apply.operands);
    let updates = graph.updates.iter().map(|update| &update.value);
    // Metrics read the score of an output.
    let score = linked_score(graph).map(|(_, score)| score);
    for id in graph.losses.iter().chain(operands).chain(updates).chain(&score) {
        last_use[id.0] = usize::MAX;
    }
    let mut workspace = Workspace::default();
    let output_of = positions(graph, graph.outputs.iter().map(|output| output.value));
    let gradient_of = positions(graph, graph.gradients.iter().map(|(_, gradient)| *gradient));
    let stored = plan.all.iter().enumerate().filter(|(_, id)| chains.result_beyond(**id).is_none());
    for (step, id) in stored {
        plan.destinations[id.0] = Some(match (output_of[id.0], gradient_of[id.0]) {
            (Some(index), _) => Destination::Output(index),
            (None, Some(index)) => Destination::Gradient(index),
            (None, None) => {
                let wanted =
                    Buffer { storage: graph.storage(*id), element: graph.value(*id).element };
                // Operands of a step are still read while its result is written.
                let until = last_use[id.0].saturating_add(1).max(step + 1);
                Destination::Buffer(workspace.take(wanted, step, until))
            }
        });
    }
    plan.buffers = workspace.buffers;
}

/// For each value its place among those given, the first where it is several of them.
fn positions(
    graph: &Graph,
    of: impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator,
) -> Vec<Option<usize>> {
    let mut positions = vec![None; graph.values.len()];
    for (place, id) in of.enumerate().rev() {
        positions[id.0] = Some(place);
    }
    positions
}

/// The buffers, and which of them are free. O(log of their number) each time one is taken.
#[derive(Default)]
struct Workspace {
    buffers: Vec<Buffer>,
    /// Those that hold values, by the step from which on they are free.
    held: BTreeSet<(usize, usize)>,
    /// The others, those of one kind together.
    free: Vec<(Buffer, BTreeSet<usize>)>,
}

impl Workspace {
    /// The first buffer of a kind that is free at a step, which is held `until` another.
    fn take(&mut self, wanted: Buffer, step: usize, until: usize) -> usize {
        while let Some((_, index)) = self.held.first().copied().filter(|(from, _)| *from <= step) {
            self.held.pop_first();
            let buffer = self.buffers[index];
            self.free_of(buffer).insert(index);
        }
        let index = self.free_of(wanted).pop_first().unwrap_or_else(|| {
            self.buffers.push(wanted);
            self.buffers.len() - 1
        });
        self.held.insert((until, index));
        index
    }

    fn free_of(&mut self, kind: Buffer) -> &mut BTreeSet<usize> {
        let known = self.free.iter().position(|(known, _)| *known == kind);
        let place = known.unwrap_or_else(|| {
            self.free.push((kind, BTreeSet::new()));
            self.free.len() - 1
        });
        &mut self.free[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::ir::parse;

    #[test]
    fn buffers_are_reused() {
        let compiled = compile(
            parse(
                "model M f32\nx = input csr f32 [n, d]\ny = label dense f32 [n, 1]\n\
                 w = param row_sparse f32 [d, 1] \"Zeros\"\n\
                 s = dot(x, w)\nt = tanh(s)\nu = exp(t)\nv = sin(u)\nl = squared_error(v, y)\nloss l\noutput v = v",
            )
            .unwrap(),
        );
        assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
        let plan = &compiled.plan;
        // s is not read by the backward pass (tanh' is a formula in t); t, u and the gradients are.
        let dense = plan.buffers.iter().filter(|buffer| buffer.storage == Storage::Dense).count();
        assert!(dense <= 5, "{plan:?}");
    }

    #[test]
    fn scattered_terms_are_kept_until_the_update() {
        let compiled = compile(
            parse(
                "model M f32\nx = input csr f32 [n, d]\ny = label dense f32 [n, 2]\n\
                 t = param row_sparse f32 [d, 2] \"Zeros\"\nw = param row_sparse f32 [d, 2] \"Zeros\"\n\
                 s = embedding_bag(x, t)\nr = tanh(s)\nu = dot(x, w)\nv = add(r, u)\n\
                 l = squared_error(v, y)\nloss l",
            )
            .unwrap(),
        );
        let (plan, graph) = (&compiled.plan, &compiled.graph);
        let scattered = compiled.fusion.scattered();
        assert_eq!(scattered.len(), 2);
        for (term, step) in scattered.iter().flat_map(|scatter| &scatter.terms).map(|term| {
            (graph.apply_of(*term).unwrap(), plan.all.iter().position(|id| id == term).unwrap())
        }) {
            let kept = plan.destinations[term.operands[1].0];
            let later = plan.all[step..].iter().map(|id| plan.destinations[id.0]);
            assert!(later.into_iter().all(|written| written != kept), "{kept:?}");
        }
    }

    #[test]
    fn no_step_overwrites_what_a_later_one_reads() {
        let compiled = compile(
            parse(
                "model M f32\na = input dense f32 [n, 2]\nb = tanh(a)\nc = exp(b)\nd = add(b, c)\ne = sin(d)\n\
                 f = multiply(e, c)\noutput f = f",
            )
            .unwrap(),
        );
        let (plan, graph) = (&compiled.plan, &compiled.graph);
        let mut holder = vec![None; plan.buffers.len()];
        for id in &plan.all {
            for operand in &graph.apply_of(*id).unwrap().operands {
                if let Some(Destination::Buffer(index)) = plan.destinations[operand.0] {
                    assert_eq!(holder[index], Some(*operand));
                    assert_ne!(plan.destinations[id.0], Some(Destination::Buffer(index)));
                }
            }
            if let Some(Destination::Buffer(index)) = plan.destinations[id.0] {
                holder[index] = Some(*id);
            }
        }
    }
}
