//! Storage types alone, through the compiler's own passes: no array, and no kernel is run.
//!
//! A case is compiled like a case of an operator, as it stands and with conversions allowed; the
//! storage types that the compiler infers for its result and for the gradient of each operand must
//! be the recorded ones. What the reference refuses must be refused with any fallback.

use crate::golden::case::{Tensor, cases, id, storage};
use crate::golden::compilation::{Compilation, backward, forward, operand_name};
use crate::golden::operators::Findings;
use crate::golden::reasons::{Deviation, Kind, operator_name};
use crate::golden::recipes::{Build, Recipe, mark_ids, recipe};
use crate::golden::refusals::is_refusal;
use crate::golden::tally::{Outcome, Tally, finish};
use nnz::core::compile::Compiled;
use nnz::core::shapes::{Dim, Dims};
use nnz::core::storage::Storage;
use serde_json::Value;

#[test]
fn infer() {
    finish(judged());
}

pub(crate) fn judged() -> Option<Tally> {
    let mut tally = Tally::new("infer");
    for case in &cases("infer")? {
        let op = case["op"].as_str().unwrap_or("(no operator)");
        match recipe(op, &case["attrs"]) {
            Ok(Recipe::Built { build, explicit, loss, .. }) => {
                let found = run_case(case, &build, explicit.as_ref(), loss.as_ref());
                Findings::add_to(&mut tally, id(case), &names(op, case), found);
            }
            Ok(other) => tally.add(id(case), other.outcome()),
            Err(message) => tally.add(id(case), Outcome::Failed(message)),
        }
    }
    Some(tally)
}

/// The id of the case, and the operator with its operands: ids of this file are put together
/// otherwise than those of operators.
fn names(op: &str, case: &Value) -> Vec<String> {
    let inputs = case["inputs"].as_array().map_or(&[][..], Vec::as_slice);
    let stypes = inputs.iter().filter_map(|input| storage(&input["stype"]));
    vec![format!("{}.", id(case)), operator_name(op, stypes)]
}

fn run_case(
    case: &Value,
    build: &Build,
    explicit: Option<&Build>,
    loss: Option<&Build>,
) -> Result<Findings, String> {
    let inputs = Tensor::read_all(&case["inputs"])?;
    let mut inputs: Vec<Tensor> = inputs.into_iter().collect::<Option<_>>().ok_or("no input")?;
    mark_ids(case["op"].as_str().unwrap_or_default(), inputs.iter_mut());
    let compiled =
        Compilation::of(build, explicit, |build, fallback| forward(build, &inputs, fallback));
    if !case["refused"].is_null() {
        let deviations = match compiled {
            Ok(Compilation::Accepted(_)) => {
                vec![Kind::Accepted.because("it is accepted, and the reference refuses it")]
            }
            Ok(Compilation::Refused(message, _)) => vec![Kind::Converted.because(message)],
            Err(message) => return is_refusal(&message).map(|()| Findings::default()),
        };
        return Ok(Findings { deviations, falls_back: false });
    }
    let forward = compiled?;
    let fallback = case["fallback"].as_bool().ok_or("no word about a fallback")?;
    let mut deviations = Vec::new();
    deviations.extend(forward.deviation(fallback, Kind::Rule, Kind::Refused));
    let graph = &forward.compiled().graph;
    let [output] = &graph.outputs[..] else { return Err("no output".into()) };
    // The reference counts results that nobody sees, such as the mask of dropout: the first one is
    // the result.
    let expected = storage(&case["outputs"][0]).ok_or("no storage type of the output")?;
    let found = graph.storage(output.value);
    deviations.extend(differ("output", found, expected, Kind::Sparser, Kind::Storage));

    let grads = &case["grads"];
    let asked: Vec<bool> = inputs.iter().map(|input| grads[&input.name].is_string()).collect();
    let mut falls_back = fallback && forward.is_refused();
    if !asked.contains(&true) {
        return Ok(Findings { deviations, falls_back });
    }
    let head = Tensor {
        storage: Some(expected),
        shape: sizes(&graph.shape(output.value))?,
        ..Tensor::default()
    };
    // A layer that is a loss takes no gradient of its output.
    let head = loss.is_none().then_some(&head);
    let gradients = Compilation::of(loss.unwrap_or(build), explicit, |build, fallback| {
        backward(build, &inputs, &asked, head, fallback)
    })?;
    let grad_fallback = fallback || case["grad_fallback"].as_bool() == Some(true);
    falls_back |= grad_fallback && gradients.is_refused();
    // A forward that is refused says nothing about its gradient.
    if let Compilation::Accepted(_) = forward {
        deviations.extend(gradients.deviation(
            grad_fallback,
            Kind::GradientRule,
            Kind::GradientRefused,
        ));
    }
    for (index, input) in inputs.iter().enumerate().filter(|(index, _)| asked[*index]) {
        let expected = storage(&grads[&input.name]).ok_or("a gradient without a storage type")?;
        let found = gradient(gradients.compiled(), &operand_name(index))
            .ok_or_else(|| format!("no gradient of `{}`", input.name))?;
        let what = format!("gradient of `{}`", input.name);
        let kinds = (Kind::GradientSparser, Kind::GradientStorage);
        deviations.extend(differ(&what, found, expected, kinds.0, kinds.1));
    }
    Ok(Findings { deviations, falls_back })
}

/// The storage type inferred for a parameter's gradient.
fn gradient(compiled: &Compiled, parameter: &str) -> Option<Storage> {
    let graph = &compiled.graph;
    let mut gradients = graph.gradients.iter();
    let (_, gradient) = gradients.find(|(id, _)| graph.label(*id) == parameter)?;
    Some(graph.storage(*gradient))
}

fn differ(
    what: &str,
    found: Storage,
    expected: Storage,
    sparser: Kind,
    other: Kind,
) -> Option<Deviation> {
    let kind = if expected == Storage::Dense { sparser } else { other };
    (found != expected).then(|| kind.because(format!("{what}: {found}, expected {expected}")))
}

fn sizes(shape: &Dims) -> Result<Vec<usize>, String> {
    let sizes = shape.iter().map(|dim| match dim {
        Dim::Size(size) => Ok(*size as usize),
        dim => Err(format!("the extent {dim} of the output is not known")),
    });
    sizes.collect()
}
