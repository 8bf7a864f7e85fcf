//! What the reference refuses, when storage types are inferred or when it runs.
//!
//! An operator is refused by the compiler, with any fallback, or by an error of a constructor or of
//! the interpreter; or it is better on purpose: then it gives what it gives of dense operands,
//! where storage says nothing, and a [reason](crate::golden::reasons) covers it.

use crate::golden::case::{Tensor, cases, id};
use crate::golden::compare::Tolerance;
use crate::golden::compilation::{Compilation, arrays, forward};
use crate::golden::corrections::{Part, Recorded, corrected};
use crate::golden::device::{Device, Failure, Host};
use crate::golden::libsvm;
use crate::golden::operators::{FORWARD, compare, elements};
use crate::golden::reasons::{Deviation, Kind, judge};
use crate::golden::recipes::{Build, Recipe, ids_of, recipe};
use crate::golden::refused_updates;
use crate::golden::svrg;
use crate::golden::tally::{Outcome, Tally, finish};
use nnz::core::storage::Storage;
use nnz::interpreter::evaluate;
use serde_json::Value;

#[test]
fn refusals() {
    finish(judged(&Host));
}

pub(crate) fn judged<D: Device>(on: &D) -> Option<Tally> {
    let mut tally = Tally::new(&format!("refusals{}", D::SUFFIX));
    for case in &cases("refusals")? {
        tally.add(id(case), outcome(case, on));
    }
    Some(tally)
}

fn outcome(case: &Value, on: &impl Device) -> Outcome {
    let judge = |result: Result<_, Failure>| match result {
        Ok(deviations) => judge(&names(case), deviations),
        Err(failure) => failure.into(),
    };
    let here = |what| on.only_on_host(what);
    match (case["op"].as_str(), case["optimizer"].as_str(), case["family"].as_str()) {
        (Some("LibSVMIter"), ..) => match here("files are read on the host") {
            Ok(()) => libsvm::run_refusal(case),
            Err(failure) => failure.into(),
        },
        (Some(op), ..) => match recipe(op, &case["attrs"]) {
            Ok(Recipe::Built { build, explicit, of_pattern, .. }) => {
                judge(run_operator(case, &build, explicit.as_ref(), of_pattern.as_ref(), on))
            }
            Ok(other) => other.outcome(),
            Err(message) => Outcome::Failed(message),
        },
        (_, Some(_), _) => judge(
            here("updates of arrays that are lent").and_then(|()| Ok(refused_updates::run(case)?)),
        ),
        (_, _, Some("train_svrg")) => judge(svrg::run_refused(case, on)),
        _ => Outcome::Failed("neither an operator nor an optimizer that is known".into()),
    }
}

/// A case is called by its file, and by its id there.
fn names(case: &Value) -> [&str; 2] {
    let name = id(case);
    [name, name.split_once('/').map_or(name, |(_, id)| id)]
}

fn run_operator(
    case: &Value,
    build: &Build,
    explicit: Option<&Build>,
    of_pattern: Option<&Build>,
    on: &impl Device,
) -> Result<Vec<Deviation>, Failure> {
    let inputs = Tensor::read_all(&case["inputs"])?;
    let mut inputs: Vec<Tensor> = inputs.into_iter().collect::<Option<_>>().ok_or("no input")?;
    for &index in ids_of(case["op"].as_str().unwrap_or_default()) {
        inputs.get_mut(index).ok_or("an operand is missing")?.holds_ids = true;
    }
    let compiled =
        Compilation::of(build, explicit, |build, fallback| forward(build, &inputs, fallback));
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(message) => return Ok(is_refusal(&message).map(|()| Vec::new())?),
    };
    let Ok(arrays) = arrays(&inputs) else { return Ok(Vec::new()) };
    let values = match on.evaluate(compiled.compiled(), &arrays) {
        Ok(values) => values,
        Err(Failure::Refused(_)) => return Ok(Vec::new()),
        Err(failure) => return Err(failure),
    };
    let found = values.output("o").ok_or("no output")?;

    let expected = match of_pattern {
        Some(build) => {
            of_dense(&inputs.iter().map(Tensor::pattern).collect::<Vec<_>>(), build, None)
        }
        None => of_dense(&inputs, build, explicit),
    }?;
    let tolerance = Tolerance::of_case(id(case), case["op"].as_str().unwrap_or_default());
    let recorded = Recorded { attributes: &case["attrs"], inputs: &inputs, output: &expected };
    let (names, mut deviations) = (names(case), Vec::new());
    let expected = corrected(&names, recorded, Part::Output, &expected, &mut deviations);
    // It has the storage that it has; its values must be right.
    compare(tolerance, "output", found, &expected, FORWARD, &mut Vec::new())?;
    deviations.push(match &compiled {
        Compilation::Accepted(_) => Kind::Accepted.because("accepted as it stands"),
        Compilation::Refused(message, _) => Kind::Converted.because(message),
    });
    Ok(deviations)
}

/// A refusal is a diagnostic of the catalogue, and not a bug of the compiler.
pub(crate) fn is_refusal(message: &str) -> Result<(), String> {
    if message.contains("[NNZ0") && !message.contains("[NNZ09") {
        Ok(())
    } else {
        Err(message.to_owned())
    }
}

/// What an operator gives of dense operands.
pub(crate) fn of_dense(
    inputs: &[Tensor],
    build: &Build,
    explicit: Option<&Build>,
) -> Result<Tensor, String> {
    let dense = |tensor: &Tensor| Tensor { holds_ids: tensor.holds_ids, ..tensor.expanded() };
    let inputs: Vec<Tensor> = inputs.iter().map(dense).collect();
    let compiled =
        Compilation::of(build, explicit, |build, fallback| forward(build, &inputs, fallback))?;
    let values =
        evaluate(compiled.compiled(), &arrays(&inputs)?).map_err(|error| error.to_string())?;
    let found = values.output("o").ok_or("no output")?;
    Ok(Tensor {
        storage: Some(Storage::Dense),
        shape: found.shape().to_vec(),
        data: elements(found)?,
        ..Tensor::default()
    })
}
