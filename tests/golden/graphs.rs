//! Graphs of operators: forward, gradients, and the storage type of every node.
//!
//! A graph is built node by node by the recipes of its operators, and compiled like a case of one
//! operator: as it stands, and with conversions allowed. A node whose reference falls back must
//! have an operand that is converted, no other node may, and a graph is refused as it stands if
//! there is such a node. Deviations of a node are judged by the name of its operator, those of
//! gradients by the name of the graph.

use crate::golden::case::{Tensor, cases, id, storage};
use crate::golden::compare::Tolerance;
use crate::golden::compilation::{append, arrays, declare, forward, parameter};
use crate::golden::corrections::{Part, Recorded, corrected};
use crate::golden::device::{Device, Failure, Host};
use crate::golden::operators::{BACKWARD, FORWARD, check_shape, compare};
use crate::golden::reasons::{Deviation, Kind, judge_each, operator_name};
use crate::golden::recipes::{Build, Recipe, ids_of, recipe};
use crate::golden::tally::{Outcome, Tally, finish};
use nnz::core::compile::compile;
use nnz::core::ir::{self, Fallback, Graph, Output, Place, ValueId};
use nnz::core::storage::{ElementType, Storage};
use nnz::interpreter::evaluate;
use nnz::kernels::Array;
use serde_json::Value;
use std::collections::HashMap;

#[test]
fn graphs() {
    finish(judged(&Host));
}

pub(crate) fn judged<D: Device>(on: &D) -> Option<Tally> {
    let mut tally = Tally::new(&format!("graphs{}", D::SUFFIX));
    for case in &cases("graphs")? {
        let outcome = match Case::read(case) {
            Ok(Ok(case)) => match case.run(on) {
                Ok((deviations, falls_back)) => {
                    if falls_back {
                        tally.add_fallback();
                    }
                    judge_each(deviations)
                }
                Err(failure) => failure.into(),
            },
            Ok(Err(other)) => other.outcome(),
            Err(message) => Outcome::Failed(message),
        };
        tally.add(id(case), outcome);
    }
    Some(tally)
}

/// A deviation, and the names that reasons may cover it by.
type Named = (Vec<String>, Deviation);

struct Case<'a> {
    json: &'a Value,
    nodes: Vec<Node<'a>>,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    heads: Vec<Tensor>,
    gradients: Vec<Option<Tensor>>,
}

struct Node<'a> {
    name: &'a str,
    op: &'a str,
    operands: Vec<&'a str>,
    build: Build,
    /// Of a layer whose gradient is that of a loss.
    loss: Option<Build>,
    /// As recorded.
    storage: Storage,
    fallback: bool,
    operand_storage: Vec<Storage>,
}

/// The place of a node's values: nodes are counted from 1.
fn place(node: usize) -> Place {
    Place(node as u32 + 1)
}

impl<'a> Case<'a> {
    /// Reads a case; the inner error is an operator that is not built.
    fn read(json: &'a Value) -> Result<Result<Self, Recipe>, String> {
        let tensors = |name: &str| -> Result<Vec<Tensor>, String> {
            let tensors = Tensor::read_all(&json[name])?;
            tensors.into_iter().collect::<Option<_>>().ok_or(format!("one of `{name}` is null"))
        };
        let mut nodes = Vec::new();
        for node in json["graph"]["nodes"].as_array().ok_or("no nodes")? {
            match Node::read(node, &json["node_stypes"])? {
                Ok(node) => nodes.push(node),
                Err(other) => return Ok(Err(other)),
            }
        }
        let mut inputs = tensors("inputs")?;
        for node in json["graph"]["nodes"].as_array().into_iter().flatten() {
            let ids = ids_of(node["op"].as_str().unwrap_or_default());
            for name in ids.iter().map(|&index| node["inputs"][index].as_str()) {
                // A node that gives ids moves data: its result is an input here.
                if let Some(at) = nodes.iter().position(|node: &Node<'_>| Some(node.name) == name) {
                    inputs.push(nodes.remove(at).result(&inputs)?);
                }
                let read = inputs.iter_mut().filter(|input| Some(&input.name[..]) == name);
                read.for_each(|input| input.holds_ids = true);
            }
        }
        let mut gradients = Tensor::read_all(&json["grads"])?;
        gradients.resize_with(inputs.len(), || None);
        Ok(Ok(Case {
            json,
            nodes,
            inputs,
            outputs: tensors("outputs")?,
            heads: tensors("out_grads")?,
            gradients,
        }))
    }

    /// The deviations, and whether the graph was met where a fallback is allowed, and refused where
    /// it is not.
    fn run(&self, on: &impl Device) -> Result<(Vec<Named>, bool), Failure> {
        let mut deviations = Vec::new();
        let refused = self.run_forward(&mut deviations, on)?;
        let mut falls_back = refused && self.json["fallback"] == true;
        if self.gradients.iter().any(Option::is_some) {
            falls_back |= self.run_backward(refused, &mut deviations, on)?;
        }
        Ok((deviations, falls_back))
    }

    fn recorded(&self) -> Result<Recorded<'_>, String> {
        let output = self.outputs.first().ok_or("no output")?;
        Ok(Recorded { attributes: &Value::Null, inputs: &self.inputs, output })
    }

    /// The storage types of all nodes, and the outputs. Gives whether the graph is refused as it
    /// stands.
    fn run_forward(&self, deviations: &mut Vec<Named>, on: &impl Device) -> Result<bool, Failure> {
        let strict = compile(self.graph(Fallback::Deny, false)?);
        let free = compile(self.graph(Fallback::Allow, false)?);
        let graph = &free.graph;
        let values = on.evaluate(&free, &self.arrays(false)?)?;
        let mut converts = false;
        for (index, node) in self.nodes.iter().enumerate() {
            let converted = self.is_converted(graph, index);
            converts |= converted;
            let mut add = |deviation| deviations.push((self.names(Some(node)), deviation));
            match (converted, node.fallback) {
                (true, false) => add(Kind::Refused.because(format!("`{}` needs one", node.name))),
                (false, true) => add(Kind::Rule.because(format!("`{}` needs none", node.name))),
                _ => {}
            }
            // A node that changes nothing has no value of its own.
            let Some(id) = graph.ids().find(|id| graph.label(*id) == node.name) else { continue };
            let (found, expected) = (graph.storage(id), node.storage);
            if found != expected {
                let kind = if expected == Storage::Dense { Kind::Sparser } else { Kind::Storage };
                add(kind.because(format!("`{}`: {found}, expected {expected}", node.name)));
            }
        }
        let refused = strict.errors().next().is_some();
        if refused != converts {
            let message = format!("refused as it stands: {refused}; conversions: {converts}");
            return Err(message.into());
        }
        for (index, (name, expected)) in self.output_names()?.iter().zip(&self.outputs).enumerate()
        {
            let found = values.output(&output_name(index)).ok_or("no output")?;
            check_shape(found, expected)?;
            let node = self.nodes.iter().find(|node| node.name == *name);
            let mut found_deviations = Vec::new();
            let names = self.names(node);
            let (recorded, part) = (self.recorded()?, Part::Output);
            let expected = corrected(&names[..1], recorded, part, expected, &mut found_deviations);
            compare(self.tolerance(), name, found, &expected, FORWARD, &mut found_deviations)?;
            deviations.extend(found_deviations.into_iter().map(|one| (names.clone(), one)));
        }
        Ok(refused)
    }

    /// Whether an operand of a node's operators is a conversion that the graph does not have, or
    /// its result is.
    fn is_converted(&self, graph: &Graph, node: usize) -> bool {
        graph.ids().filter(|id| graph.value(*id).place == place(node)).any(|id| {
            let operands = graph.apply_of(id).into_iter().flat_map(|apply| &apply.operands);
            let mut operands = operands.map(|operand| graph.value(*operand));
            !graph.value(id).inserted && operands.any(|operand| operand.inserted)
        })
    }

    /// The gradients. Gives whether they are met where a fallback is allowed, and refused as they
    /// stand like those of the reference.
    fn run_backward(
        &self,
        refused: bool,
        deviations: &mut Vec<Named>,
        on: &impl Device,
    ) -> Result<bool, Failure> {
        let strict = compile(self.graph(Fallback::Deny, true)?);
        let free = compile(self.graph(Fallback::Allow, true)?);
        let mut add = |deviation| deviations.push((self.names(None), deviation));
        let grad_fallback = self.json["grad_fallback"].as_bool().ok_or("no word about it")?;
        // A forward that is refused says nothing about its gradient.
        match strict.errors().next() {
            _ if refused => {}
            Some(error) if !grad_fallback => add(Kind::GradientRefused.because(error.text())),
            None if grad_fallback => {
                add(Kind::GradientRule.because("it is not refused, and the reference falls back"));
            }
            _ => {}
        }
        let arrays = self.arrays(true)?;
        let values = on.evaluate(&free, &arrays)?;
        for (index, expected) in self.gradients.iter().enumerate() {
            let Some(expected) = expected else { continue };
            let name = &self.inputs[index].name;
            let found = values.gradient(name).ok_or_else(|| format!("no gradient of `{name}`"))?;
            let what = format!("gradient of `{name}`");
            let mut found_deviations = Vec::new();
            let (recorded, part) = (self.recorded()?, Part::Gradient(index));
            let names = self.names(None);
            let expected = corrected(&names, recorded, part, expected, &mut found_deviations);
            compare(self.tolerance(), &what, found, &expected, BACKWARD, &mut found_deviations)?;
            found_deviations.into_iter().for_each(&mut add);
        }
        Ok(grad_fallback && strict.errors().next().is_some())
    }

    /// The graph of the nodes; with the gradients that the case asks for, or with the outputs.
    fn graph(&self, fallback: Fallback, gradients: bool) -> Result<Graph, String> {
        let mut graph = Graph::new("Case", ElementType::F32);
        graph.fallback = fallback;
        // As in `Compilation`.
        graph.keeps_csr_gradients = true;
        let mut values: HashMap<&str, ValueId> = HashMap::new();
        for (input, gradient) in self.inputs.iter().zip(&self.gradients) {
            let id = match gradient {
                Some(_) if gradients => parameter(&mut graph, &input.name, input),
                _ => declare(&mut graph, ir::Kind::Input, &input.name, input, input.stype()),
            };
            values.insert(&input.name, id);
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let operands = node.operands.iter().map(|name| values.get(name).copied());
            let operands: Vec<ValueId> =
                operands.collect::<Option<_>>().ok_or("an operand that is not known")?;
            let before = graph.values.len();
            let id = (node.build)(&mut graph, &operands);
            if let Some(loss) = node.loss.as_ref().filter(|_| gradients) {
                let loss = loss(&mut graph, &operands);
                graph.losses.push(loss);
            }
            for value in &mut graph.values[before..] {
                value.place = place(index);
            }
            if id.0 >= before {
                graph.values[id.0].name = Some(node.name.to_owned());
            }
            values.insert(node.name, id);
        }
        for (index, name) in self.output_names()?.into_iter().enumerate() {
            let value = *values.get(name).ok_or("an output that is not known")?;
            if !gradients {
                let name = output_name(index);
                graph.outputs.push(Output { name, value, place: Place::default() });
                continue;
            }
            if self.nodes.iter().any(|node| node.name == name && node.loss.is_some()) {
                continue;
            }
            let head = self.heads.get(index).ok_or("no gradient of an output")?;
            let head = declare(&mut graph, ir::Kind::Input, &head_name(index), head, head.stype());
            let product = append(&mut graph, "multiply", &[value, head]);
            let loss = append(&mut graph, "sum", &[product]);
            graph.losses.push(loss);
        }
        Ok(graph)
    }

    fn arrays(&self, gradients: bool) -> Result<HashMap<String, Array<f32>>, String> {
        let mut arrays = HashMap::new();
        for (input, gradient) in self.inputs.iter().zip(&self.gradients) {
            let array = match gradient {
                Some(_) if gradients => input.expanded().array()?,
                _ => input.array()?,
            };
            arrays.insert(input.name.clone(), array);
        }
        for (index, head) in self.heads.iter().enumerate().filter(|_| gradients) {
            arrays.insert(head_name(index), head.array()?);
        }
        Ok(arrays)
    }

    fn output_names(&self) -> Result<Vec<&'a str>, String> {
        let outputs = self.json["graph"]["outputs"].as_array().ok_or("no outputs")?;
        outputs.iter().map(|name| name.as_str().ok_or("a name that is none".to_owned())).collect()
    }

    /// The most that one of the operators needs.
    fn tolerance(&self) -> Tolerance {
        let each = self.nodes.iter().map(|node| Tolerance::of_case(id(self.json), node.op));
        each.reduce(Tolerance::wider).unwrap_or(Tolerance::of_case(id(self.json), ""))
    }

    /// What a deviation of the graph goes by, or of one of its nodes.
    fn names(&self, node: Option<&Node<'_>>) -> Vec<String> {
        let operator =
            node.map(|node| operator_name(node.op, node.operand_storage.iter().copied()));
        [format!("graphs/{}", id(self.json))].into_iter().chain(operator).collect()
    }
}

impl<'a> Node<'a> {
    fn read(node: &'a Value, stypes: &Value) -> Result<Result<Self, Recipe>, String> {
        let word = |value: &'a Value| value.as_str().ok_or("a word is missing in a node");
        let (name, op) = (word(&node["name"])?, word(&node["op"])?);
        let (build, loss) = match recipe(op, &node["attrs"])? {
            Recipe::Built { build, loss, .. } => (build, loss),
            other => return Ok(Err(other)),
        };
        let operands = node["inputs"].as_array().ok_or("a node without inputs")?;
        let stypes = &stypes[name];
        let operand_storage = stypes["in"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(Ok(Node {
            name,
            op,
            build,
            loss,
            operands: operands.iter().map(word).collect::<Result<_, _>>()?,
            storage: storage(&stypes["out"][0]).ok_or("a node without a storage type")?,
            fallback: stypes["fallback"].as_bool().ok_or("a node without a word on fallback")?,
            operand_storage: operand_storage.iter().filter_map(storage).collect(),
        }))
    }
}

impl Node<'_> {
    /// What the node gives of inputs, as a tensor of its name.
    fn result(&self, inputs: &[Tensor]) -> Result<Tensor, String> {
        let find = |name: &&str| inputs.iter().find(|input| input.name == **name).cloned();
        let operands: Option<Vec<Tensor>> = self.operands.iter().map(find).collect();
        let operands = operands.ok_or("ids that are computed from what is computed")?;
        let compiled = compile(forward(&self.build, &operands, Fallback::Deny));
        let values = evaluate(&compiled, &arrays(&operands)?).map_err(|error| error.to_string())?;
        let Some(Array::Dense(result)) = values.output("o") else {
            return Err("ids that are not dense".into());
        };
        Ok(Tensor {
            name: self.name.to_owned(),
            storage: Some(Storage::Dense),
            shape: result.shape().to_vec(),
            data: result.values().iter().map(|&value| f64::from(value)).collect(),
            ..Tensor::default()
        })
    }
}

fn output_name(index: usize) -> String {
    format!("output {index}")
}

fn head_name(index: usize) -> String {
    format!("head {index}")
}
