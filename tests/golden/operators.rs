//! Operator cases: forward and gradient, through the compiler and the interpreter.
//!
//! Each case is compiled as it stands (`fallback = deny`), and with conversions allowed where that is refused. What the
//! reference computes on temporary dense copies must be refused, and met once it is allowed; values and
//! storage types must be the recorded ones. Anything else is a deviation, which a [reason](crate::reasons) must cover.
//!
//! The gradient with respect to an operand of any storage is that of a dense parameter that is converted to it,
//! because parameters themselves cannot be csr.

use crate::case::{Tensor, cases, id};
use crate::compare::Tolerance;
use crate::folder::say;
use crate::reasons::{Deviation, Kind, judge, judge_failure};
use crate::recipes::{Build, Recipe, mark_ids, recipe};
use crate::tally::{Outcome, Tally};
use nnz::core::compile::{Compiled, compile};
use nnz::core::ir::{self, Attributes, Fallback, Graph, Output, Place, ValueId};
use nnz::core::operators::find;
use nnz::core::shapes::Dim;
use nnz::core::storage::{ElementType, Storage};
use nnz::formats::{Csr, Dense, RowSparse, Shape};
use nnz::interpreter::{Values, evaluate};
use nnz::kernels::Array;
use serde_json::Value;
use std::collections::HashMap;

#[test]
fn dot() {
    run_file("dot");
}

#[test]
fn elemwise() {
    run_file("elemwise");
}

#[test]
fn broadcast() {
    run_file("broadcast");
}

#[test]
fn scalar() {
    run_file("scalar");
}

#[test]
fn unary() {
    run_file("unary");
}

#[test]
fn reduce() {
    run_file("reduce");
}

#[test]
fn storage() {
    run_file("storage");
}

/// Files that no test reads yet: their cases are counted, so that nobody takes them for passed.
#[test]
fn files_that_are_not_run_yet() {
    for file in ["kvstore"] {
        if let Some(cases) = cases(file) {
            say(&format!("golden {file}: {} cases, not run yet", cases.len()));
        }
    }
}

#[test]
fn structure() {
    run_file("structure");
}

#[test]
fn nn() {
    run_file("nn");
}

fn run_file(file: &str) {
    let Some(cases) = cases(file) else { return };
    let mut tally = Tally::new(file);
    for case in &cases {
        let op = case["op"].as_str().unwrap_or("(no operator)");
        if op == "zeros" {
            tally.add(id(case), zeros(case).into());
            continue;
        }
        if op == "Cast" {
            let outcome = match cast(case) {
                Ok(deviations) => judge(&[id(case)], deviations),
                Err(message) => Outcome::Failed(message),
            };
            tally.add(id(case), outcome);
            continue;
        }
        let outcome = match recipe(op, &case["attrs"]) {
            Ok(Recipe::Built { build, explicit, loss, .. }) => {
                match run_case(case, &build, explicit.as_ref(), loss.as_ref()) {
                    Ok(deviations) => judge(&[id(case)], deviations),
                    Err(message) => judge_failure(id(case), message),
                }
            }
            Ok(Recipe::NotBuilt(what)) => Outcome::NotBuilt(what),
            Ok(Recipe::NotOffered(why)) => Outcome::Reasons([why].into()),
            Err(message) => Outcome::Failed(message),
        };
        tally.add(id(case), outcome);
    }
    tally.finish();
}

/// Zeros of a shape and storage, which are constructors here.
fn zeros(case: &Value) -> Result<(), String> {
    let [expected] = &all(Tensor::read_all(&case["outputs"])?)?[..] else {
        return Err("not one output".to_owned());
    };
    let shape: Option<Vec<usize>> = (case["attrs"]["shape"].as_array().into_iter().flatten())
        .map(|extent| extent.as_u64().map(|extent| extent as usize))
        .collect();
    let shape = Shape::try_new(&shape.ok_or("no shape")?).map_err(|error| error.to_string())?;
    let found = match crate::case::storage(&case["attrs"]["stype"]).ok_or("no storage type")? {
        Storage::Dense => Array::Dense(Dense::<f32>::zeros(shape)),
        Storage::Csr => {
            let (n_rows, n_cols) = shape.matrix().ok_or("not a matrix")?;
            Array::Csr(Csr::zeros(n_rows, n_cols))
        }
        Storage::RowSparse => Array::RowSparse(RowSparse::zeros(shape)),
    };
    check_shape(&found, expected)?;
    let mut deviations = Vec::new();
    compare(Tolerance::of_case("", "zeros"), "zeros", &found, expected, FORWARD, &mut deviations)?;
    if deviations.is_empty() { Ok(()) } else { Err("not these zeros".to_owned()) }
}

/// Other element types, which arrays are cast to: a model computes in one.
fn cast(case: &Value) -> Result<Vec<Deviation>, String> {
    let ([input], [expected]) = (
        &all(Tensor::read_all(&case["inputs"])?)?[..],
        &all(Tensor::read_all(&case["outputs"])?)?[..],
    ) else {
        return Err("not one tensor".to_owned());
    };
    // Every integer of the reference's 32 bits is one of 64.
    let wide = match case["attrs"]["dtype"].as_str() {
        Some("float64") => false,
        Some("int32") => true,
        _ => return Err("an element type that is not known".to_owned()),
    };
    let array = input.array()?;
    let found: Vec<f64> = match &array {
        Array::Dense(array) if wide => {
            array.cast::<i64>().values().iter().map(|x| *x as f64).collect()
        }
        Array::Dense(array) => array.cast::<f64>().values().to_vec(),
        Array::Csr(array) if wide => array
            .cast::<i64>()
            .to_dense()
            .map_err(|error| error.to_string())?
            .values()
            .iter()
            .map(|x| *x as f64)
            .collect(),
        Array::Csr(array) => {
            array.cast::<f64>().to_dense().map_err(|error| error.to_string())?.into_values()
        }
        Array::RowSparse(array) if wide => array
            .cast::<i64>()
            .to_dense()
            .map_err(|error| error.to_string())?
            .values()
            .iter()
            .map(|x| *x as f64)
            .collect(),
        Array::RowSparse(array) => {
            array.cast::<f64>().to_dense().map_err(|error| error.to_string())?.into_values()
        }
        Array::Ids(_) => return Err("ids".to_owned()),
    };
    Tolerance::of_case("", "Cast").compare("cast", found, &expected.expand())?;
    let sparse = array.storage() != expected.stype();
    Ok(sparse.then(|| Kind::Sparser.because("a cast keeps the storage")).into_iter().collect())
}

/// What was compiled under which fallback.
pub(crate) enum Compilation {
    /// As it stands.
    Accepted(Compiled),
    /// Refused as it stands: the message, and what is compiled with conversions allowed.
    Refused(String, Compiled),
}

impl Compilation {
    /// Compiles what `graph` makes of an operator. Where that is refused with any fallback, what the refusal says to write
    /// instead is compiled, if there is such a thing.
    pub(crate) fn of(
        build: &Build,
        explicit: Option<&Build>,
        graph: impl Fn(&Build, Fallback) -> Graph,
    ) -> Result<Self, String> {
        let first = |compiled: &Compiled| compiled.errors().next().map(|error| error.text());
        let strict = compile(graph(build, Fallback::Deny));
        let Some(refusal) = first(&strict) else { return Ok(Compilation::Accepted(strict)) };
        let free = compile(graph(build, Fallback::Allow));
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

/// Runs a case that is one operator.
fn run_case(
    case: &Value,
    build: &Build,
    explicit: Option<&Build>,
    loss: Option<&Build>,
) -> Result<Vec<Deviation>, String> {
    let mut inputs = all(Tensor::read_all(&case["inputs"])?)?;
    mark_ids(case["op"].as_str().unwrap_or_default(), inputs.iter_mut());
    let expected = all(Tensor::read_all(&case["outputs"])?)?;
    let heads = all(Tensor::read_all(&case["out_grads"])?)?;
    let gradients = Tensor::read_all(&case["grads"])?;
    let tolerance = Tolerance::of_case(id(case), case["op"].as_str().unwrap_or_default());
    let [expected] = &expected[..] else {
        return Err(format!("{} outputs", expected.len()));
    };
    let fallback = case["fallback"].as_bool().ok_or("no word about a fallback")?;

    let forward =
        Compilation::of(build, explicit, |build, fallback| forward(build, &inputs, fallback))?;
    let mut deviations = Vec::new();
    deviations.extend(forward.deviation(fallback, Kind::Rule, Kind::Refused));
    let arrays = arrays(&inputs)?;
    let values = evaluate(forward.compiled(), &arrays).map_err(|error| error.to_string())?;
    let found = values.output("o").ok_or("no output")?;
    check_shape(found, expected)?;
    compare(tolerance, "output", found, expected, FORWARD, &mut deviations)?;

    // A layer that is a loss takes no gradient of its output.
    let head = heads.first();
    if (head.is_some() || loss.is_some()) && gradients.iter().any(Option::is_some) {
        let asked: Vec<bool> = gradients.iter().map(Option::is_some).collect();
        let backward = Compilation::of(loss.unwrap_or(build), explicit, |build, fallback| {
            backward(build, &inputs, &asked, head, fallback)
        })?;
        let expected_refusal = fallback || case["grad_fallback"].as_bool() == Some(true);
        // A forward that is refused says nothing about its gradient.
        if let Compilation::Accepted(_) = forward {
            deviations.extend(backward.deviation(
                expected_refusal,
                Kind::GradientRule,
                Kind::GradientRefused,
            ));
        }
        let values = evaluate_gradients(&backward, &inputs, &asked, head)?;
        for (index, expected) in gradients.iter().enumerate() {
            let Some(expected) = expected else { continue };
            let name = operand_name(index);
            let found = values.gradient(&name).ok_or_else(|| format!("no gradient of {name}"))?;
            let what = format!("gradient of operand {index}");
            compare(tolerance, &what, found, expected, BACKWARD, &mut deviations)?;
        }
    }
    Ok(deviations)
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

/// The operator in a loss whose gradient with respect to the result is the one recorded, the sum of the product with it; or, without
/// one, what is a loss itself.
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
    let kind = ir::Kind::Parameter { initializer: "Zeros".to_owned(), frozen: false };
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

fn evaluate_gradients<'a>(
    backward: &'a Compilation,
    inputs: &[Tensor],
    asked: &[bool],
    head: Option<&Tensor>,
) -> Result<Values<'a, f32>, String> {
    let mut arrays = arrays(inputs)?;
    for (index, tensor) in inputs.iter().enumerate().filter(|(index, _)| asked[*index]) {
        arrays.insert(operand_name(index), tensor.expanded().array()?);
    }
    if let Some(head) = head {
        arrays.insert("head".to_owned(), head.array()?);
    }
    evaluate(backward.compiled(), &arrays).map_err(|error| error.to_string())
}

/// Shapes are equal, but that the reference has no array without dimensions: it writes `[1]`.
pub(crate) fn check_shape(found: &Array<f32>, expected: &Tensor) -> Result<(), String> {
    let shape = found.shape();
    if shape[..] == expected.shape[..] || (shape.rank() == 0 && expected.shape == [1]) {
        return Ok(());
    }
    Err(format!("the output has shape {shape}, expected {:?}", expected.shape))
}

/// What a difference of a result is called: sparser, another storage, 0 for NaN, other values.
pub(crate) type Kinds = [Kind; 4];
pub(crate) const FORWARD: Kinds = [Kind::Sparser, Kind::Storage, Kind::ZeroForNan, Kind::Values];
pub(crate) const BACKWARD: Kinds =
    [Kind::GradientSparser, Kind::GradientStorage, Kind::GradientZeroForNan, Kind::GradientValues];

/// Storage type and values.
pub(crate) fn compare(
    tolerance: Tolerance,
    what: &str,
    found: &Array<f32>,
    expected: &Tensor,
    [sparser, storage, zero_for_nan, values]: Kinds,
    deviations: &mut Vec<Deviation>,
) -> Result<(), String> {
    let found_storage = found.storage();
    if found_storage != expected.stype() {
        let kind = if expected.stype() == Storage::Dense { sparser } else { storage };
        let expected = expected.stype();
        deviations.push(kind.because(format!("{what}: {found_storage}, expected {expected}")));
    }
    if let Array::Ids(ids) = found {
        let ids = ids.view();
        let numbers = (0..ids.len()).map(|at| ids.number(at) as f64);
        if let Err(message) = tolerance.compare(what, numbers, &expected.expand()) {
            deviations.push(values.because(message));
        }
        return Ok(());
    }
    let dense = match found {
        Array::Dense(dense) => Ok(dense.clone()),
        Array::Csr(csr) => csr.to_dense(),
        Array::RowSparse(rows) => rows.to_dense(),
        Array::Ids(_) => return Ok(()),
    };
    let dense = dense.map_err(|error| error.to_string())?;
    let numbers: Vec<f64> = dense.values().iter().map(|&value| f64::from(value)).collect();
    let mut expected = expected.expand();
    let Err(message) = tolerance.compare(what, numbers.iter().copied(), &expected) else {
        return Ok(());
    };
    if found_storage.is_sparse() {
        for (expected, found) in expected.iter_mut().zip(&numbers) {
            if expected.is_nan() && *found == 0.0 {
                *expected = 0.0;
            }
        }
    }
    let kind = match tolerance.compare(what, numbers, &expected) {
        Ok(()) => zero_for_nan,
        Err(_) => values,
    };
    deviations.push(kind.because(message));
    Ok(())
}

fn all(tensors: Vec<Option<Tensor>>) -> Result<Vec<Tensor>, String> {
    tensors.into_iter().collect::<Option<_>>().ok_or_else(|| "a tensor is null".to_owned())
}
