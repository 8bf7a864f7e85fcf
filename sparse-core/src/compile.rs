//! The compiler's pipeline, in one function.

use crate::diagnostics::{Code, Diagnostic, Severity};
use crate::ir::{Graph, Kind, print};
use crate::passes::{
    Chains, Fusion, Plan, TableRows, chains, decays, differentiate, fuse, infer_shapes,
    infer_storage, leave_out_read_gradients, merge_equal, plan, read_rows_first, rows,
    separate_outputs, simplify,
};

/// A model after all passes.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The typed graph, gradients included.
    pub graph: Graph,
    /// The table rows that a batch reads and writes, for each parameter.
    pub rows: Vec<TableRows>,
    /// Which parameters penalties shrink, in the order of declaration.
    pub decays: Vec<bool>,
    /// The fusion of the training step.
    pub fusion: Fusion,
    /// The chains of element-wise operators that are one loop.
    pub chains: Chains,
    /// The order of computation, and the buffers.
    pub plan: Plan,
    /// The errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}

impl Compiled {
    /// The diagnostics that stop the build.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.code.severity() == Severity::Error)
    }

    /// A hash of the typed graph (FNV-1a of its text): equal for equal models, on every machine.
    /// Whether a parameter decays concerns training only, and is left out.
    pub fn fingerprint(&self) -> u64 {
        let mut graph = self.graph.clone();
        for value in &mut graph.values {
            if let Kind::Parameter { decay, .. } = &mut value.kind {
                *decay = None;
            }
        }
        print(&graph).bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

/// Runs every pass. All errors of a pass are reported together; then the pipeline stops.
pub fn compile(mut graph: Graph) -> Compiled {
    let mut diagnostics = Vec::new();
    let inferred: [Pass; 4] = [check_model, infer_shapes, infer_storage, separate_outputs];
    if !run(&inferred, &mut graph, &mut diagnostics) {
        return broken(graph, diagnostics);
    }
    // Of uses as they stand in the source: before any is rewritten.
    let decays = decays(&graph);
    if !run(&[gradients], &mut graph, &mut diagnostics) {
        return broken(graph, diagnostics);
    }
    simplify(&mut graph);
    let rows = rows(&graph);
    let fusion = fuse(&graph);
    let chains = chains(&graph, &fusion);
    let plan = plan(&graph, &fusion, &chains);
    Compiled { graph, rows, decays, fusion, chains, plan, diagnostics }
}

type Pass = fn(&mut Graph) -> Vec<Diagnostic>;

/// Runs passes up to one that has errors. False where one has.
fn run(passes: &[Pass], graph: &mut Graph, diagnostics: &mut Vec<Diagnostic>) -> bool {
    passes.iter().all(|pass| {
        diagnostics.extend(pass(graph));
        diagnostics.iter().all(|diagnostic| diagnostic.code.severity() != Severity::Error)
    })
}

/// The result for a model with errors.
fn broken(graph: Graph, diagnostics: Vec<Diagnostic>) -> Compiled {
    Compiled {
        graph,
        rows: Vec::new(),
        decays: Vec::new(),
        fusion: Fusion::None { reason: "the model has errors".into() },
        chains: Chains::default(),
        plan: Plan::default(),
        diagnostics,
    }
}

fn gradients(graph: &mut Graph) -> Vec<Diagnostic> {
    merge_equal(graph);
    read_rows_first(graph);
    let diagnostics = differentiate(graph);
    leave_out_read_gradients(graph);
    diagnostics
}

/// Checks of a model as a whole.
fn check_model(graph: &mut Graph) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    if graph.outputs.is_empty() && graph.losses.is_empty() {
        diagnostics.push(
            Diagnostic::new(
                Code::EmptyModel,
                graph.place,
                format!("the model `{}` has neither an output nor a loss", graph.name),
            )
            .help("add `output name;` or `loss squared_error(prediction, label);`"),
        );
    }
    for output in &graph.outputs {
        let needed = graph.ancestors([output.value]);
        let label =
            graph.ids().find(|id| needed[id.0] && matches!(graph.value(*id).kind, Kind::Label));
        if let Some(label) = label {
            let name = graph.label(label);
            diagnostics.push(
                Diagnostic::new(
                    Code::OutputNeedsLabel,
                    output.place,
                    format!("the output `{}` is computed from the label `{name}`", output.name),
                )
                .help(format!("predictions are made without labels; declare `input {name}: …` if it is known then")),
            );
        }
    }
    diagnostics
}
