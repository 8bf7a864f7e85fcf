//! The plan: the order of computation, the kernel and the buffer of every value, and what it costs.

use super::{Fusion, RowSet, Rows};
use crate::ir::{Graph, Kind, ValueId};
use crate::shapes::{show, size_formula};
use crate::storage::{ElementType, Storage};
use std::fmt::Write as _;

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
    /// For each value that is computed, where it is written to.
    pub destinations: Vec<Option<Destination>>,
    /// The values to compute for the outputs, in order.
    pub forward: Vec<ValueId>,
    /// The values to compute for the outputs and the loss, in order.
    pub loss: Vec<ValueId>,
    /// The values to compute for outputs, loss and gradients, in order.
    pub all: Vec<ValueId>,
    /// The table.
    pub text: String,
    /// The graph in Graphviz's language.
    pub dot: String,
}

/// Plans a graph that inference and differentiation have gone through.
pub fn plan(graph: &Graph, fusion: &Fusion, rows: &[Rows]) -> Plan {
    let outputs = || graph.outputs.iter().map(|output| output.value);
    let schedule = |roots: &mut dyn Iterator<Item = ValueId>| -> Vec<ValueId> {
        let needed = graph.ancestors(roots);
        graph.ids().filter(|id| needed[id.0] && graph.apply_of(*id).is_some()).collect()
    };
    let mut plan = Plan {
        forward: schedule(&mut outputs()),
        loss: schedule(&mut outputs().chain(graph.losses.iter().copied())),
        all: schedule(
            &mut outputs()
                .chain(graph.losses.iter().copied())
                .chain(graph.gradients.iter().map(|(_, gradient)| *gradient)),
        ),
        ..Plan::default()
    };
    assign_buffers(graph, &mut plan);
    plan.text = table(graph, fusion, rows, &plan);
    plan.dot = graphviz(graph);
    plan
}

/// The name of the kernel that computes a value: operator and rule, `dot_csr_dense`.
pub fn kernel_name(graph: &Graph, id: ValueId) -> Option<String> {
    let apply = graph.apply_of(id)?;
    let signature = apply.operator.storage.get(apply.rule?)?.signature();
    Some(format!("{}_{}", apply.operator.name, signature.kernel(graph.storage(id))))
}

/// Linear scan over the whole order: a buffer is free again after the last use of its value.
fn assign_buffers(graph: &Graph, plan: &mut Plan) {
    plan.destinations = vec![None; graph.values.len()];
    let mut last_use = vec![0usize; graph.values.len()];
    for (step, id) in plan.all.iter().enumerate() {
        for operand in graph.apply_of(*id).into_iter().flat_map(|apply| &apply.operands) {
            last_use[operand.0] = step;
        }
    }
    for loss in &graph.losses {
        last_use[loss.0] = usize::MAX;
    }
    let mut free_from: Vec<usize> = Vec::new();
    for (step, id) in plan.all.iter().enumerate() {
        let output = graph.outputs.iter().position(|output| output.value == *id);
        let gradient = graph.gradients.iter().position(|(_, gradient)| gradient == id);
        plan.destinations[id.0] = Some(match (output, gradient) {
            (Some(index), _) => Destination::Output(index),
            (None, Some(index)) => Destination::Gradient(index),
            (None, None) => {
                let wanted =
                    Buffer { storage: graph.storage(*id), element: graph.value(*id).element };
                let reusable = (0..plan.buffers.len())
                    .find(|index| plan.buffers[*index] == wanted && free_from[*index] <= step);
                let index = reusable.unwrap_or_else(|| {
                    plan.buffers.push(wanted);
                    free_from.push(0);
                    plan.buffers.len() - 1
                });
                // Operands of a step are still read while its result is written.
                free_from[index] = last_use[id.0].saturating_add(1).max(step + 1);
                Destination::Buffer(index)
            }
        });
    }
}

/// The bytes of a value as a formula.
fn bytes(graph: &Graph, id: ValueId) -> String {
    let shape = graph.shape(id);
    let element = graph.value(id).element.bytes();
    match graph.storage(id) {
        Storage::Dense => format!("{element} × {}", size_formula(&shape)),
        Storage::Csr => {
            format!("8 × ({} + 1) + {} × nnz", size_formula(&shape[..1]), element + 4)
        }
        Storage::RowSparse => {
            format!("rows × (8 + {element} × {})", size_formula(&shape[1..]))
        }
    }
}

fn table(graph: &Graph, fusion: &Fusion, rows: &[Rows], plan: &Plan) -> String {
    let mut lines =
        vec![["value", "is", "shape", "storage", "gradient", "bytes", "buffer"].map(String::from)];
    for id in graph.ids() {
        let value = graph.value(id);
        let (is, bytes) = match &value.kind {
            Kind::Constant(_) => continue,
            Kind::Input => ("input".to_owned(), bytes(graph, id)),
            Kind::Label => ("label".to_owned(), bytes(graph, id)),
            Kind::Parameter { frozen, .. } => {
                let word = if *frozen { "frozen parameter" } else { "parameter" };
                let table =
                    format!("{} × {}", value.element.bytes(), size_formula(&graph.shape(id)));
                (word.to_owned(), table)
            }
            Kind::Apply(apply) => {
                let operands: Vec<String> =
                    apply.operands.iter().map(|operand| graph.label(*operand)).collect();
                let kernel = kernel_name(graph, id).unwrap_or_default();
                (format!("{kernel}({})", operands.join(", ")), bytes(graph, id))
            }
        };
        let gradient = graph
            .gradients
            .iter()
            .find(|(parameter, _)| *parameter == id)
            .map_or(String::new(), |(_, gradient)| graph.storage(*gradient).to_string());
        let buffer = match plan.destinations[id.0] {
            None => String::new(),
            Some(Destination::Buffer(index)) => format!("buffer {index}"),
            Some(Destination::Output(index)) => format!("output {}", graph.outputs[index].name),
            Some(Destination::Gradient(index)) => {
                format!("gradient of {}", graph.label(graph.gradients[index].0))
            }
        };
        let storage = match value.element == graph.element() {
            true => graph.storage(id).to_string(),
            false => format!("{}<{}>", graph.storage(id), value.element),
        };
        lines.push([graph.label(id), is, show(&graph.shape(id)), storage, gradient, bytes, buffer]);
    }
    let mut widths = [0usize; 7];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = format!("{} ({})\n", graph.name, graph.element());
    for line in &lines {
        let mut row = String::new();
        for (cell, width) in line.iter().zip(widths) {
            let pad = width - cell.chars().count();
            let _ = write!(row, "{cell}{}  ", " ".repeat(pad));
        }
        let _ = writeln!(text, "{}", row.trim_end());
    }
    for part in rows {
        let describe = |set: &RowSet| match set {
            RowSet::All => "all rows".to_owned(),
            RowSet::Columns(inputs) if inputs.is_empty() => "no rows".to_owned(),
            RowSet::Columns(inputs) => {
                let names: Vec<String> = inputs.iter().map(|id| graph.label(*id)).collect();
                format!("the columns of {}", names.join(" and "))
            }
        };
        let writes = part.writes.as_ref().map_or("nothing".to_owned(), describe);
        let _ = writeln!(
            text,
            "rows of {}: a batch reads {}, writes {writes}",
            graph.label(part.parameter),
            describe(&part.reads)
        );
    }
    if !graph.losses.is_empty() {
        let _ = match fusion {
            Fusion::None { reason } => writeln!(text, "step: not fused ({reason})"),
            Fusion::LinearRows(parts) => writeln!(
                text,
                "step: one loop over the rows of {} (product, {}, update of {})",
                graph.label(parts.input),
                graph.describe(parts.loss),
                graph.label(parts.weight)
            ),
        };
    }
    text
}

/// The graph for Graphviz; colours by storage.
fn graphviz(graph: &Graph) -> String {
    let mut text = format!("digraph {} {{\n  node [shape = box, style = filled];\n", graph.name);
    for id in graph.ids() {
        let colour = match graph.storage(id) {
            Storage::Dense => "white",
            Storage::Csr => "lightblue",
            Storage::RowSparse => "palegreen",
        };
        let what = match graph.apply_of(id) {
            Some(apply) => format!("{} = {}", graph.label(id), apply.operator.name),
            None => graph.label(id),
        };
        let shape = show(&graph.shape(id));
        let _ = writeln!(
            text,
            "  v{} [label = \"{what}\\n{}{shape}\", fillcolor = {colour}];",
            id.0,
            graph.storage(id)
        );
        for operand in graph.apply_of(id).into_iter().flat_map(|apply| &apply.operands) {
            let _ = writeln!(text, "  v{} -> v{};", operand.0, id.0);
        }
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::ir::parse;

    #[test]
    fn buffers_are_reused_and_the_table_shows_everything() {
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
        assert!(plan.text.contains("s      dot_csr_row_sparse(x, w)"), "{}", plan.text);
        assert!(
            plan.text
                .contains("rows of w: a batch reads the columns of x, writes the columns of x")
        );
        assert!(plan.text.contains("step: one loop over the rows of x"));
        assert!(plan.dot.starts_with("digraph M {"));
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
