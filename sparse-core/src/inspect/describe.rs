//! Conversion of a compiled graph into its plan as data.

use super::{
    Computed, Extent, Operand, Part, PlanLookup, PlanLookupRead, PlanNamedRow, PlanPool, PlanRead,
    PlanRowSet, PlanRows, PlanStep, PlanTable, PlanValue, Stored, Written,
};
use crate::compile::Compiled;
use crate::ir::{AttributeValue, Fallback, Graph, Kind, ValueId};
use crate::operators;
use crate::passes::{
    Destination, Fusion, Lookup, LookupRead, NamedRow, NamedRows, Read, RowSet, Terms, kernel_name,
    rows_stored,
};
use crate::shapes::{Dim, Dims};
use crate::storage::Storage;
use std::collections::BTreeSet;

impl Compiled {
    /// Shows the plan as data. It borrows what is put together here; hence a closure.
    ///
    /// ```
    /// # mod nnz { pub use sparse_core as core; }
    /// use nnz::core::{compile::compile, ir};
    ///
    /// let graph = ir::parse("model M f32\nx = input csr f32 [n, d]\ny = tanh(x)\noutput y = y")?;
    /// let text = compile(graph).inspect(|plan| plan.to_string());
    /// assert!(text.contains("tanh_csr(x)"));
    /// # Ok::<(), String>(())
    /// ```
    pub fn inspect<R>(&self, read: impl FnOnce(&PlanTable<'_>) -> R) -> R {
        let (graph, parts) = (&self.graph, Parts::new(self));
        let extents: Vec<Vec<Extent<'_>>> = parts.shapes.iter().map(extents).collect();
        let values: Vec<PlanValue<'_>> = parts
            .ids
            .iter()
            .enumerate()
            .map(|(index, id)| parts.value(self, *id, index, &extents[index]))
            .collect();
        let rows: Vec<PlanRows<'_>> = self
            .rows
            .iter()
            .zip(&parts.rows)
            .zip(&self.decays)
            .map(|((rows, (reads, writes)), decays)| PlanRows {
                parameter: parts.position(rows.parameter),
                reads: row_set(&rows.reads, reads),
                writes: rows.writes.as_ref().map(|set| row_set(set, writes)),
                decays: *decays,
            })
            .collect();
        let step = match &self.fusion {
            _ if graph.losses.is_empty() => PlanStep::None,
            Fusion::None { reason } => PlanStep::Unfused { reason },
            Fusion::Scattered { reason, program, .. } => PlanStep::Scattered {
                reason,
                parameters: &parts.updated_in_place,
                one_row: program.as_ref().err().map(String::as_str),
                many_rows: self.fusion.through_layers(graph),
                reads: &parts.reads,
            },
            Fusion::RowLoop(row_loop) => match &row_loop.terms {
                Terms::Linear(linear) => PlanStep::LinearRows {
                    input: parts.position(linear.input),
                    weight: parts.position(linear.weight),
                    factors: linear.interaction.as_ref().map(|term| parts.position(term.factors)),
                    loss: &parts.loss,
                },
                Terms::Lookups(_) => {
                    PlanStep::LookupRows { reads: &parts.lookups, loss: &parts.loss }
                }
            },
        };
        read(&PlanTable {
            name: &graph.name,
            element: graph.element(),
            values: &values,
            rows: &rows,
            losses: &parts.losses,
            step,
            warns: graph.fallback == Fallback::Warn,
        })
    }
}

/// What a table borrows and the graph does not hold, value by value.
struct Parts {
    /// The values shown: all but numbers.
    ids: Vec<ValueId>,
    /// The position of each value of the graph among them.
    positions: Vec<u32>,
    shapes: Vec<Dims>,
    kernels: Vec<String>,
    operands: Vec<Vec<Operand>>,
    attributes: Vec<Vec<(&'static str, AttributeValue)>>,
    losses: Vec<Operand>,
    /// The values whose distinct columns or ids a value's rows are.
    distinct: Vec<Vec<u32>>,
    rows: Vec<(Vec<u32>, Vec<u32>)>,
    loss: String,
    /// What a loop over rows that ids name reads.
    lookups: Vec<PlanLookup>,
    /// What a sample reads by a row program.
    reads: Vec<PlanRead>,
    /// The parameters whose gradients are never made: scattered, or updated in the loop.
    updated_in_place: Vec<u32>,
    /// For each value, whether an update of a state is computed from it.
    updated: Vec<bool>,
    /// For each value the one whose pattern it has.
    patterns: Vec<ValueId>,
    /// Whether a step is one loop through dense layers.
    is_through_layers: bool,
    /// For each value, whether a step has something else than its kernel.
    by_step: Vec<bool>,
}

impl Parts {
    fn new(compiled: &Compiled) -> Self {
        let graph = &compiled.graph;
        let ids: Vec<ValueId> = graph.ids().filter(|id| !graph.is_number(*id)).collect();
        let mut positions = vec![0; graph.values.len()];
        for (position, id) in ids.iter().enumerate() {
            positions[id.0] = position as u32;
        }
        let of_set = |set: &RowSet| match set {
            RowSet::All => Vec::new(),
            RowSet::Columns(inputs) => inputs.iter().map(|id| positions[id.0]).collect(),
        };
        let (stored, patterns) = (rows_stored(graph), patterns(graph));
        let loss = match &compiled.fusion {
            Fusion::RowLoop(row_loop) => graph.describe(row_loop.loss),
            Fusion::None { .. } | Fusion::Scattered { .. } => String::new(),
        };
        let lookups = match &compiled.fusion {
            Fusion::RowLoop(row_loop) => match &row_loop.terms {
                Terms::Lookups(lookups) => &lookups[..],
                Terms::Linear(_) => &[],
            },
            Fusion::None { .. } | Fusion::Scattered { .. } => &[],
        };
        let reads = match &compiled.fusion {
            Fusion::Scattered { program: Ok(program), .. } => {
                let reads = program.reads.iter().chain(&program.frozen);
                reads.map(|read| self::read(graph, read, &positions)).collect()
            }
            _ => Vec::new(),
        };
        let in_place = compiled.fusion.updated_in_place();
        let updated_in_place = in_place.iter().map(|id| positions[id.0]).collect();
        Parts {
            shapes: ids.iter().map(|id| graph.shape(*id)).collect(),
            kernels: ids.iter().map(|id| kernel_name(graph, *id).unwrap_or_default()).collect(),
            operands: ids.iter().map(|id| operands(graph, *id, &positions)).collect(),
            attributes: ids.iter().map(|id| attributes(graph, *id)).collect(),
            losses: graph.losses.iter().map(|id| operand(graph, *id, &positions)).collect(),
            distinct: ids
                .iter()
                .map(|id| {
                    let patterns = match &stored[id.0] {
                        RowSet::All => BTreeSet::new(),
                        RowSet::Columns(inputs) => {
                            inputs.iter().map(|input| patterns[input.0]).collect()
                        }
                    };
                    patterns.into_iter().map(|id| positions[id.0]).collect()
                })
                .collect(),
            rows: compiled
                .rows
                .iter()
                .map(|rows| {
                    (of_set(&rows.reads), rows.writes.as_ref().map(of_set).unwrap_or_default())
                })
                .collect(),
            loss,
            lookups: lookups.iter().map(|lookup| self::lookup(lookup, &positions)).collect(),
            reads,
            updated_in_place,
            updated: updated(compiled),
            patterns,
            is_through_layers: compiled.fusion.through_layers(graph) == Some(true),
            by_step: compiled.fusion.computed(graph),
            ids,
            positions,
        }
    }

    fn position(&self, id: ValueId) -> u32 {
        self.positions[id.0]
    }

    fn value<'a>(
        &'a self,
        compiled: &'a Compiled,
        id: ValueId,
        index: usize,
        shape: &'a [Extent<'a>],
    ) -> PlanValue<'a> {
        let (graph, value) = (&compiled.graph, compiled.graph.value(id));
        let of_parameter = graph.gradients.binary_search_by_key(&id, |(parameter, _)| *parameter);
        let gradient = of_parameter.ok().map(|place| graph.gradients[place]);
        PlanValue {
            name: value.name.as_deref().unwrap_or_default(),
            number: id.0 as u32,
            part: part(compiled, &self.updated, id),
            storage: graph.storage(id),
            element: value.element,
            shape,
            stored: self.stored(graph, id, index),
            gradient: gradient.map(|(_, gradient)| self.position(gradient)),
            computed: graph.apply_of(id).map(|apply| Computed {
                operator: apply.operator.name,
                kernel: &self.kernels[index],
                on_gpu: (apply.operator.gpu_family(&self.kernels[index]))
                    .map(|of| of.name(&self.kernels[index])),
                operands: &self.operands[index],
                attributes: &self.attributes[index],
                fused: self.is_through_layers || self.by_step[id.0],
                fallback: value.inserted,
            }),
            written: self.written(compiled, id),
        }
    }

    fn written<'a>(&self, compiled: &'a Compiled, id: ValueId) -> Option<Written<'a>> {
        let graph = &compiled.graph;
        if let Some(result) = compiled.chains.result_beyond(id) {
            return Some(Written::Within(self.position(result)));
        }
        Some(match compiled.plan.destinations.get(id.0).copied().flatten()? {
            Destination::Buffer(index) => Written::Buffer(index as u32),
            Destination::Output(index) => Written::Output(&graph.outputs[index].name),
            Destination::Gradient(index) => {
                Written::Gradient(self.position(graph.gradients[index].0))
            }
        })
    }

    fn stored<'a>(&'a self, graph: &Graph, id: ValueId, index: usize) -> Stored<'a> {
        let table = matches!(graph.value(id).kind, Kind::Parameter { .. });
        if graph.storage(id) == Storage::Dense || table {
            return Stored::All;
        }
        let source = self.patterns[id.0];
        match (self.distinct[index].as_slice(), &graph.value(source).kind) {
            ([], Kind::Parameter { .. }) => Stored::AllRows,
            ([], _) => Stored::As(self.position(source)),
            (inputs, _) => Stored::Distinct(inputs),
        }
    }
}

fn read(graph: &Graph, read: &Read, positions: &[u32]) -> PlanRead {
    let flag = |name| graph.apply_of(read.value).is_some_and(|apply| apply.attributes.flag(name));
    PlanRead {
        table: positions[read.table.0],
        by: positions[read.rows.by().0],
        pool: match read.rows {
            NamedRows::Product { .. } => PlanPool::Sum { weighted: true, mean: false },
            NamedRows::Bags { .. } => {
                PlanPool::Sum { weighted: flag("weighted"), mean: flag("mean") }
            }
            NamedRows::Ids { .. } => PlanPool::Rows,
            NamedRows::Pairs { .. } => PlanPool::Pairs,
        },
    }
}

fn lookup(lookup: &Lookup, positions: &[u32]) -> PlanLookup {
    let position = |id: ValueId| positions[id.0];
    let named = |row: NamedRow| PlanNamedRow { table: position(row.table), ids: position(row.ids) };
    PlanLookup {
        value: position(lookup.term.value),
        gradient: position(lookup.term.gradient),
        read: match &lookup.read {
            LookupRead::Element(row) => PlanLookupRead::Element(named(*row)),
            LookupRead::Inner { left, right, mean, .. } => {
                PlanLookupRead::Inner { left: named(*left), right: named(*right), mean: *mean }
            }
        },
    }
}

/// For each value the one whose pattern it has, where the operator is scalar and its sparse
/// operands have one; else the value itself.
fn patterns(graph: &Graph) -> Vec<ValueId> {
    let mut patterns: Vec<ValueId> = Vec::with_capacity(graph.values.len());
    for id in graph.ids() {
        patterns.push(pattern(graph, id, &patterns));
    }
    patterns
}

fn pattern(graph: &Graph, id: ValueId, before: &[ValueId]) -> ValueId {
    let Some(apply) = graph.apply_of(id) else {
        return id;
    };
    // A copy as csr, of a `csr<unit>` with its ones, has the pattern too.
    let scalar =
        matches!(apply.operator.kind, operators::Kind::Unary(_) | operators::Kind::Binary(..))
            || apply.operator.converts_to == Some(Storage::Csr);
    let sparse = || apply.operands.iter().copied().filter(|id| graph.storage(*id).is_sparse());
    // A repeated operand is stored several times.
    let alike = sparse().all(|operand| {
        graph.storage(operand) == graph.storage(id) && graph.shape(operand) == graph.shape(id)
    });
    let mut patterns = sparse().map(|operand| before[operand.0]);
    match patterns.next() {
        Some(first)
            if scalar
                && alike
                && graph.storage(id).is_sparse()
                && patterns.all(|other| other == first) =>
        {
            first
        }
        _ => id,
    }
}

fn part(compiled: &Compiled, updated: &[bool], id: ValueId) -> Part {
    // Operands come first, so that schedules are sorted.
    let is_in = |values: &[ValueId]| values.binary_search(&id).is_ok();
    match &compiled.graph.value(id).kind {
        Kind::Input => Part::Input,
        Kind::Label => Part::Label,
        Kind::Parameter { frozen: false, .. } => Part::Parameter,
        Kind::Parameter { frozen: true, .. } => {
            let updates = &compiled.graph.updates;
            if updates.iter().any(|update| update.state == id) { Part::State } else { Part::Frozen }
        }
        _ if is_in(&compiled.plan.forward) => Part::Forward,
        _ if is_in(&compiled.plan.loss) => Part::Loss,
        _ if updated[id.0] => Part::Update,
        _ if is_in(&compiled.plan.all) => Part::Gradient,
        _ => Part::Unused,
    }
}

/// What the updates of states are computed from.
fn updated(compiled: &Compiled) -> Vec<bool> {
    let graph = &compiled.graph;
    graph.ancestors(graph.updates.iter().map(|update| update.value))
}

fn operands(graph: &Graph, id: ValueId, positions: &[u32]) -> Vec<Operand> {
    let Some(apply) = graph.apply_of(id) else {
        return Vec::new();
    };
    let operand = |(index, id): (usize, &ValueId)| match operand(graph, *id, positions) {
        Operand::Value(position) if apply.operator.lends_shape_only(index) => {
            Operand::Shape(position)
        }
        operand => operand,
    };
    apply.operands.iter().enumerate().map(operand).collect()
}

fn operand(graph: &Graph, id: ValueId, positions: &[u32]) -> Operand {
    match &graph.value(id).kind {
        Kind::Constant(number) => Operand::Number(*number),
        Kind::Named(formula) => Operand::named(&formula.bare()),
        _ => Operand::Value(positions[id.0]),
    }
}

fn attributes(graph: &Graph, id: ValueId) -> Vec<(&'static str, AttributeValue)> {
    graph.apply_of(id).map(|apply| apply.attributes.iter().collect()).unwrap_or_default()
}

fn extents(dims: &Dims) -> Vec<Extent<'_>> {
    dims.iter()
        .map(|dim| match dim {
            Dim::Size(size) => Extent::Constant(*size as usize),
            Dim::Named(name) => Extent::Named(name),
            Dim::Unknown(_) => Extent::Named("_"),
        })
        .collect()
}

fn row_set<'a>(set: &RowSet, columns: &'a [u32]) -> PlanRowSet<'a> {
    match set {
        RowSet::All => PlanRowSet::All,
        RowSet::Columns(_) => PlanRowSet::Columns(columns),
    }
}
