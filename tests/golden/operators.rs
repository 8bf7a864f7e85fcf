//! Operator cases: forward and gradient, through the compiler and the interpreter.
//!
//! Each case is compiled as it stands (`fallback = deny`), and with conversions allowed where that
//! is refused. What the reference computes on temporary dense copies must be refused, and met once
//! it is allowed; values and storage types must be the recorded ones. Anything else is a deviation,
//! which a [reason](crate::golden::reasons) must cover.
//!
//! The gradient with respect to an operand of any storage is that of a dense parameter that is
//! converted to it, because parameters themselves cannot be csr.

use crate::golden::case::{Tensor, cases, id};
use crate::golden::compare::Tolerance;
use crate::golden::compilation::{Compilation, arrays, backward, forward, operand_name};
use crate::golden::corrections::{Expected, Part, Recorded, corrected};
use crate::golden::device::{Device, Failure, Host};
use crate::golden::reasons::{Deviation, Kind, judge};
use crate::golden::recipes::{Build, Recipe, mark_ids, recipe};
use crate::golden::tally::{Outcome, Tally, finish};
use nnz::core::storage::Storage;
use nnz::formats::{Csr, Dense, RowSparse, Shape};
use nnz::interpreter::Values;
use nnz::kernels::Array;
use serde_json::Value;

#[test]
fn dot() {
    finish(judged("dot", &Host));
}

#[test]
fn elemwise() {
    finish(judged("elemwise", &Host));
}

#[test]
fn broadcast() {
    finish(judged("broadcast", &Host));
}

#[test]
fn scalar() {
    finish(judged("scalar", &Host));
}

#[test]
fn unary() {
    finish(judged("unary", &Host));
}

#[test]
fn reduce() {
    finish(judged("reduce", &Host));
}

#[test]
fn storage() {
    finish(judged("storage", &Host));
}

#[test]
fn structure() {
    finish(judged("structure", &Host));
}

#[test]
fn nn() {
    finish(judged("nn", &Host));
}

/// The files of such cases.
pub(crate) const FILES: &[&str] =
    &["dot", "elemwise", "broadcast", "scalar", "unary", "reduce", "storage", "structure", "nn"];

/// The cases of a file, judged; nothing where the file is missing.
pub(crate) fn judged<D: Device>(file: &str, on: &D) -> Option<Tally> {
    const ARRAYS: &str = "arrays are made and cast on the host";
    let mut tally = Tally::new(&format!("{file}{}", D::SUFFIX));
    for case in &cases(file)? {
        let op = case["op"].as_str().unwrap_or("(no operator)");
        let (id, attributes) = (id(case), &case["attrs"]);
        match op {
            "zeros" => {
                let result = on.only_on_host(ARRAYS).and_then(|()| Ok(zeros(case)?));
                tally.add(id, result.into());
            }
            "Cast" => {
                let found = on.only_on_host(ARRAYS).and_then(|()| Ok(cast(case)?));
                Findings::add_to(&mut tally, id, &[id], found);
            }
            _ => match recipe(op, attributes) {
                Ok(Recipe::Built { build, explicit, loss, .. }) => {
                    let found = run_case(case, &build, explicit.as_ref(), loss.as_ref(), on);
                    Findings::add_to(&mut tally, id, &[id], found);
                }
                Ok(other) => tally.add(id, other.outcome()),
                Err(message) => tally.add(id, Outcome::Failed(message)),
            },
        }
    }
    Some(tally)
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
    let found =
        match crate::golden::case::storage(&case["attrs"]["stype"]).ok_or("no storage type")? {
            Storage::Dense => Array::Dense(Dense::<f32>::zeros(shape)),
            Storage::Csr => {
                let (n_rows, n_cols) = shape.matrix().ok_or("not a matrix")?;
                Array::Csr(Csr::zeros(n_rows, n_cols))
            }
            Storage::RowSparse => Array::RowSparse(RowSparse::zeros(shape)),
        };
    check_shape(&found, expected)?;
    let (tolerance, mut deviations) = (Tolerance::of_case("", "zeros"), Vec::new());
    compare(tolerance, "zeros", &found, &expected.into(), FORWARD, &mut deviations)?;
    if deviations.is_empty() { Ok(()) } else { Err("not these zeros".to_owned()) }
}

/// Other element types, which arrays are cast to: a model computes in one.
fn cast(case: &Value) -> Result<Findings, String> {
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
        Array::Ids(_) | Array::Unit(_) => return Err("no numbers".to_owned()),
    };
    Tolerance::of_case("", "Cast").compare("cast", found, &expected.expand())?;
    let sparse = array.storage() != expected.stype();
    let deviations = sparse.then(|| Kind::Sparser.because("a cast keeps the storage"));
    Ok(Findings { deviations: deviations.into_iter().collect(), ..Findings::default() })
}

/// What was found out about a case.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) deviations: Vec<Deviation>,
    /// Whether the reference falls back, and this library refuses it as it stands and computes it
    /// where a fallback is allowed.
    pub(crate) falls_back: bool,
}

impl Findings {
    /// Judges and counts the case.
    pub(crate) fn add_to(
        tally: &mut Tally,
        id: &str,
        names: &[impl AsRef<str>],
        found: Result<Self, impl Into<Outcome>>,
    ) {
        match found {
            Ok(findings) => {
                if findings.falls_back {
                    tally.add_fallback();
                }
                tally.add(id, judge(names, findings.deviations));
            }
            Err(failure) => tally.add(id, failure.into()),
        }
    }
}

/// Runs a case that is one operator.
fn run_case(
    case: &Value,
    build: &Build,
    explicit: Option<&Build>,
    loss: Option<&Build>,
    on: &impl Device,
) -> Result<Findings, Failure> {
    let mut inputs = all(Tensor::read_all(&case["inputs"])?)?;
    mark_ids(case["op"].as_str().unwrap_or_default(), inputs.iter_mut());
    let expected = all(Tensor::read_all(&case["outputs"])?)?;
    let heads = all(Tensor::read_all(&case["out_grads"])?)?;
    let gradients = Tensor::read_all(&case["grads"])?;
    let tolerance = Tolerance::of_case(id(case), case["op"].as_str().unwrap_or_default());
    let [expected] = &expected[..] else {
        return Err(format!("{} outputs", expected.len()).into());
    };
    let fallback = case["fallback"].as_bool().ok_or("no word about a fallback")?;

    let forward =
        Compilation::of(build, explicit, |build, fallback| forward(build, &inputs, fallback))?;
    let mut deviations = Vec::new();
    deviations.extend(forward.deviation(fallback, Kind::Rule, Kind::Refused));
    let arrays = arrays(&inputs)?;
    let values = on.evaluate(forward.compiled(), &arrays)?;
    let found = values.output("o").ok_or("no output")?;
    check_shape(found, expected)?;
    let names = [id(case)];
    let recorded = Recorded { attributes: &case["attrs"], inputs: &inputs, output: expected };
    let correct =
        |part, tensor, deviations: &mut _| corrected(&names, recorded, part, tensor, deviations);
    let expected = correct(Part::Output, expected, &mut deviations);
    compare(tolerance, "output", found, &expected, FORWARD, &mut deviations)?;
    let mut falls_back = fallback && forward.is_refused();

    // A layer that is a loss takes no gradient of its output.
    let head = heads.first();
    if (head.is_some() || loss.is_some()) && gradients.iter().any(Option::is_some) {
        let asked: Vec<bool> = gradients.iter().map(Option::is_some).collect();
        let backward = Compilation::of(loss.unwrap_or(build), explicit, |build, fallback| {
            backward(build, &inputs, &asked, head, fallback)
        })?;
        let expected_refusal = fallback || case["grad_fallback"].as_bool() == Some(true);
        // A forward that is refused says nothing about its gradient.
        match forward {
            Compilation::Accepted(_) => deviations.extend(backward.deviation(
                expected_refusal,
                Kind::GradientRule,
                Kind::GradientRefused,
            )),
            Compilation::Refused(..) if loss.is_none() && !backward.is_refused() => {
                return Err("it is refused, and accepted where its gradient is asked for".into());
            }
            Compilation::Refused(..) => {}
        }
        falls_back |= expected_refusal && backward.is_refused();
        let values = evaluate_gradients(&backward, &inputs, &asked, head, on)?;
        for (index, expected) in gradients.iter().enumerate() {
            let Some(expected) = expected else { continue };
            let name = operand_name(index);
            let found = values.gradient(&name).ok_or_else(|| format!("no gradient of {name}"))?;
            let what = format!("gradient of operand {index}");
            let expected = correct(Part::Gradient(index), expected, &mut deviations);
            compare(tolerance, &what, found, &expected, BACKWARD, &mut deviations)?;
        }
    }
    Ok(Findings { deviations, falls_back })
}

fn evaluate_gradients<'a>(
    backward: &'a Compilation,
    inputs: &[Tensor],
    asked: &[bool],
    head: Option<&Tensor>,
    on: &impl Device,
) -> Result<Values<'a, f32>, Failure> {
    let mut arrays = arrays(inputs)?;
    for (index, tensor) in inputs.iter().enumerate().filter(|(index, _)| asked[*index]) {
        arrays.insert(operand_name(index), tensor.expanded().array()?);
    }
    if let Some(head) = head {
        arrays.insert("head".to_owned(), head.array()?);
    }
    on.evaluate(backward.compiled(), &arrays)
}

/// Shapes are equal, but that the reference has no array without dimensions: it writes `[1]`.
pub(crate) fn check_shape(found: &Array<f32>, expected: &Tensor) -> Result<(), String> {
    let shape = found.shape();
    if shape[..] == expected.shape[..] || (shape.rank() == 0 && expected.shape == [1]) {
        return Ok(());
    }
    Err(format!("the output has shape {shape}, expected {:?}", expected.shape))
}

/// What a difference in storage is called: sparse where the reference is dense, and any other.
pub(crate) type Kinds = [Kind; 2];
pub(crate) const FORWARD: Kinds = [Kind::Sparser, Kind::Storage];
pub(crate) const BACKWARD: Kinds = [Kind::GradientSparser, Kind::GradientStorage];

/// Storage type, of which another one is a deviation, and values, of which none is.
pub(crate) fn compare(
    tolerance: Tolerance,
    what: &str,
    found: &Array<f32>,
    expected: &Expected,
    [sparser, storage]: Kinds,
    deviations: &mut Vec<Deviation>,
) -> Result<(), String> {
    let found_storage = found.storage();
    if found_storage != expected.storage {
        let kind = if expected.storage == Storage::Dense { sparser } else { storage };
        let expected = expected.storage;
        deviations.push(kind.because(format!("{what}: {found_storage}, expected {expected}")));
    }
    tolerance.compare(what, elements(found)?, &expected.values)
}

/// Every element of an array.
pub(crate) fn elements(array: &Array<f32>) -> Result<Vec<f64>, String> {
    let dense = match array {
        Array::Dense(dense) => Ok(dense.clone()),
        Array::Csr(csr) => csr.to_dense(),
        Array::RowSparse(rows) => rows.to_dense(),
        Array::Unit(csr) => csr.cast::<f32>().to_dense(),
        Array::Ids(ids) => {
            let ids = ids.view();
            return Ok((0..ids.len()).map(|at| ids.number(at) as f64).collect());
        }
    };
    let dense = dense.map_err(|error| error.to_string())?;
    Ok(dense.values().iter().map(|&value| f64::from(value)).collect())
}

fn all(tensors: Vec<Option<Tensor>>) -> Result<Vec<Tensor>, String> {
    tensors.into_iter().collect::<Option<_>>().ok_or_else(|| "a tensor is null".to_owned())
}
