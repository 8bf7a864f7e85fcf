//! A recorded operator as a graph, compiled as it stands and with conversions allowed.

use crate::golden::case::Tensor;
use crate::golden::reasons::{Deviation, Kind};
use crate::golden::recipes::Build;
use crate::golden::refusals::is_refusal;
use nnz::core::compile::{Compiled, compile};
use nnz::core::ir::{self, Attributes, Fallback, Graph, Output, Place, ValueId};
use nnz::core::operators::find;
use nnz::core::shapes::Dim;
use nnz::core::storage::{ElementType, Storage};
use nnz::kernels::Array;
use std::collections::HashMap;

/// What was compiled under which fallback.
pub(crate) enum Compilation {
    /// As it stands.
    Accepted(Compiled),
    /// Refused as it stands: the message, and what is compiled with conversions allowed.
    Refused(String, Compiled),
}

impl Compilation {
    /// Compiles what `graph` makes of an operator. Where that is refused with any fallback, what
    /// the refusal says to write instead is compiled, if there is such a thing.
    pub(crate) fn of(
        build: &Build,
        explicit: Option<&Build>,
        graph: impl Fn(&Build, Fallback) -> Graph,
    ) -> Result<Self, String> {
        // Recorded gradients of operands are csr where operands are.
        let graph =
            |build: &Build, fallback| Graph { keeps_csr_gradients: true, ..graph(build, fallback) };
        let first = |compiled: &Compiled| compiled.errors().next().map(|error| error.text());
        let conversions = |compiled: &Compiled| {
            compiled.graph.values.iter().filter(|value| value.inserted).count()
        };
        let strict = compile(graph(build, Fallback::Deny));
        let free = compile(graph(build, Fallback::Allow));
        let Some(refusal) = first(&strict) else {
            return if conversions(&free) == conversions(&strict) {
                Ok(Compilation::Accepted(strict))
            } else {
                Err("accepted as it stands, and converted where that is allowed".into())
            };
        };
        is_refusal(&refusal)?;
        let Some(message) = first(&free) else { return Ok(Compilation::Refused(refusal, free)) };
        let help = explicit.ok_or(format!("refused even with a fallback: {message}"))?;
        let free = compile(graph(help, Fallback::Allow));
        match first(&free) {
            None => Ok(Compilation::Refused(refusal, free)),
            Some(message) => Err(format!("refused as the compiler says to write it: {message}")),
        }
    }

    pub(crate) fn compiled(&self) -> &Compiled {
        match self {
            Compilation::Accepted(compiled) | Compilation::Refused(_, compiled) => compiled,
        }
    }

    /// Whether it is refused as it stands, and was compiled with conversions allowed.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Compilation::Refused(..))
    }

    /// Whether it was refused where it should have been.
    pub(crate) fn deviation(
        &self,
        fallback: bool,
        accepted: Kind,
        refused: Kind,
    ) -> Option<Deviation> {
        match self {
            Compilation::Accepted(_) if fallback => {
                Some(accepted.because("it is not refused, and the reference falls back"))
            }
            Compilation::Refused(message, _) if !fallback => Some(refused.because(message)),
            _ => None,
        }
    }
}

pub(crate) fn operand_name(index: usize) -> String {
    format!("x{index}")
}

/// The operator as a model's output.
pub(crate) fn forward(build: &Build, inputs: &[Tensor], fallback: Fallback) -> Graph {
    let mut graph = Graph::new("Case", ElementType::F32);
    graph.fallback = fallback;
    let operands: Vec<ValueId> = inputs
        .iter()
        .enumerate()
        .map(|(index, tensor)| {
            declare(&mut graph, ir::Kind::Input, &operand_name(index), tensor, tensor.stype())
        })
        .collect();
    let value = build(&mut graph, &operands);
    graph.outputs.push(Output { name: "o".to_owned(), value, place: Place::default() });
    graph
}

/// The operator in a loss whose gradient with respect to the result is the one recorded, the sum of
/// the product with it; or, without one, what is a loss itself.
pub(crate) fn backward(
    build: &Build,
    inputs: &[Tensor],
    asked: &[bool],
    head: Option<&Tensor>,
    fallback: Fallback,
) -> Graph {
    let mut graph = Graph::new("Case", ElementType::F32);
    graph.fallback = fallback;
    let mut operands = Vec::new();
    for (index, tensor) in inputs.iter().enumerate() {
        let name = operand_name(index);
        if !asked[index] {
            operands.push(declare(&mut graph, ir::Kind::Input, &name, tensor, tensor.stype()));
            continue;
        }
        operands.push(parameter(&mut graph, &name, tensor));
    }
    let head = head.map(|head| declare(&mut graph, ir::Kind::Input, "head", head, head.stype()));
    let mut loss = build(&mut graph, &operands);
    if let Some(head) = head {
        let product = append(&mut graph, "multiply", &[loss, head]);
        loss = append(&mut graph, "sum", &[product]);
    }
    graph.losses.push(loss);
    graph
}

/// A dense parameter, converted to a tensor's storage.
pub(crate) fn parameter(graph: &mut Graph, name: &str, tensor: &Tensor) -> ValueId {
    let kind = ir::Kind::Parameter { initializer: "Zeros".to_owned(), frozen: false, decay: None };
    let parameter = declare(graph, kind, name, tensor, Storage::Dense);
    match tensor.stype() {
        Storage::Dense => parameter,
        storage => append(graph, storage.name(), &[parameter]),
    }
}

pub(crate) fn append(graph: &mut Graph, operator: &str, operands: &[ValueId]) -> ValueId {
    let operator = find(operator).unwrap_or_else(|| panic!("no operator `{operator}`"));
    graph.apply(operator, operands.to_vec(), Attributes::default(), Place::default())
}

pub(crate) fn declare(
    graph: &mut Graph,
    kind: ir::Kind,
    name: &str,
    tensor: &Tensor,
    storage: Storage,
) -> ValueId {
    let shape = tensor.shape.iter().map(|&extent| Dim::Size(extent as u64)).collect();
    let element = if tensor.holds_ids { ElementType::I64 } else { ElementType::F32 };
    graph.declare(kind, name, storage, element, shape, Place::default())
}

pub(crate) fn arrays(inputs: &[Tensor]) -> Result<HashMap<String, Array<f32>>, String> {
    let named = inputs.iter().enumerate();
    named.map(|(index, tensor)| Ok((operand_name(index), tensor.array()?))).collect()
}
