//! Recorded values that are not those of this library on purpose, and what stands in their place.
//!
//! A correction computes the right values from the recorded case. Results are compared with them,
//! so that no value of any case is left out of the comparison.

use crate::golden::case::Tensor;
use crate::golden::reasons::{Deviation, matches_any};
use nnz::core::storage::Storage;
use serde_json::Value;

/// The tensors of a recorded case.
#[derive(Clone, Copy)]
pub(crate) struct Recorded<'a> {
    pub(crate) attributes: &'a Value,
    pub(crate) inputs: &'a [Tensor],
    /// The first output.
    pub(crate) output: &'a Tensor,
}

/// Which of its tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part {
    Output,
    /// The gradient of the input in this place.
    Gradient(usize),
}

/// A tensor as it should be: its storage type, and every element.
pub(crate) struct Expected {
    pub(crate) storage: Storage,
    pub(crate) values: Vec<f64>,
}

impl From<&Tensor> for Expected {
    fn from(tensor: &Tensor) -> Self {
        Expected { storage: tensor.stype(), values: tensor.expand() }
    }
}

/// Changes the values of a part of the cases whose ids match one of the patterns. Where it does not
/// apply it changes none.
struct Correction {
    patterns: &'static [&'static str],
    correct: fn(Recorded<'_>, Part, &mut [f64]),
    why: &'static str,
}

const CORRECTIONS: &[Correction] = &[
    Correction {
        patterns: &["rint.*"],
        correct: halves,
        why: "halves go to the even integer, as IEEE 754 and NumPy have it; the reference rounds them down",
    },
    Correction {
        patterns: &["*_div.cd.*", "*_div.rd.*", "scatter_elemwise_div.cc.*"],
        correct: quotient,
        why: "a sparse quotient stores what its dividend stores: what is not stored is 0, as in the reference's `broadcast_div`, and not 0/0",
    },
    Correction {
        patterns: &["LogisticRegressionOutput.*"],
        correct: probabilities,
        why: "the labels of a logistic loss are probabilities, and -1 the negative class: other negative numbers count as 0",
    },
    Correction {
        patterns: &["graphs/linear.*.LogisticRegressionOutput"],
        correct: probabilities_of_linear,
        why: "in a graph as well, negative labels of a logistic loss count as 0",
    },
    Correction {
        patterns: &["MAERegressionOutput.*"],
        correct: equal,
        why: "where prediction and label are equal the slope of the absolute error is 0; the reference takes that of one side",
    },
    Correction {
        patterns: &["SoftmaxOutput.*"],
        correct: distribution,
        why: "the cross entropy with targets that do not add up to 1 has their sum in its gradient: the reference leaves it out",
    },
];

/// Why, of each correction.
pub(crate) fn whys() -> impl Iterator<Item = &'static str> {
    CORRECTIONS.iter().map(|correction| correction.why)
}

/// A recorded tensor, corrected; what was corrected is a deviation.
pub(crate) fn corrected(
    names: &[impl AsRef<str>],
    recorded: Recorded<'_>,
    part: Part,
    tensor: &Tensor,
    deviations: &mut Vec<Deviation>,
) -> Expected {
    let mut expected = Expected::from(tensor);
    for correction in CORRECTIONS.iter().filter(|one| matches_any(one.patterns, names)) {
        let before: Vec<u64> = expected.values.iter().map(|value| value.to_bits()).collect();
        (correction.correct)(recorded, part, &mut expected.values);
        if !before.into_iter().eq(expected.values.iter().map(|value| value.to_bits())) {
            deviations.push(Deviation::Corrected(correction.why));
        }
    }
    expected
}

fn halves(recorded: Recorded<'_>, part: Part, values: &mut [f64]) {
    let [x] = recorded.inputs else { return };
    for (value, x) in values.iter_mut().zip(x.expand()) {
        if part == Part::Output && x.fract().abs() == 0.5 {
            *value = x.round_ties_even();
        }
    }
}

fn quotient(recorded: Recorded<'_>, part: Part, values: &mut [f64]) {
    let stored = recorded.inputs[0].pattern().expand();
    if part == Part::Output && stored.len() == values.len() {
        for (value, _) in values.iter_mut().zip(stored).filter(|(_, stored)| *stored == 0.0) {
            *value = 0.0;
        }
    }
}

/// What the gradient of a regression layer is multiplied by: `grad_scale`, over the elements of a
/// sample.
fn scale(recorded: Recorded<'_>) -> f64 {
    let shape = &recorded.output.shape;
    let scale = recorded.attributes["grad_scale"].as_f64().unwrap_or(1.0);
    scale / shape[1..].iter().product::<usize>() as f64
}

/// What is missing in the gradient of the scores of a logistic loss whose negative labels count as
/// 0: the labels themselves.
fn missing(recorded: Recorded<'_>, label: &Tensor) -> Vec<f64> {
    let scale = scale(recorded);
    label.expand().into_iter().map(|label| label.min(0.0) * scale).collect()
}

fn probabilities(recorded: Recorded<'_>, part: Part, values: &mut [f64]) {
    let [_, label] = recorded.inputs else { return };
    if part == Part::Gradient(0) {
        values.iter_mut().zip(missing(recorded, label)).for_each(|(value, more)| *value += more);
    }
}

/// Through the product and the sum of a linear model with one output: a weight's gradient is the
/// product of the transposed data with that of the scores.
fn probabilities_of_linear(recorded: Recorded<'_>, part: Part, values: &mut [f64]) {
    let input = |name: &str| recorded.inputs.iter().find(|input| input.name == name);
    let (Part::Gradient(index), Some(data), Some(label)) = (part, input("data"), input("label"))
    else {
        return;
    };
    let (missing, data) = (missing(recorded, label), data.expand());
    match &recorded.inputs[index].name[..] {
        "bias" => values[0] += missing.iter().sum::<f64>(),
        "weight" => {
            for (row, missing) in data.chunks(values.len()).zip(missing) {
                values.iter_mut().zip(row).for_each(|(value, x)| *value += x * missing);
            }
        }
        _ => {}
    }
}

fn equal(recorded: Recorded<'_>, part: Part, values: &mut [f64]) {
    let [score, label] = recorded.inputs else { return };
    if part == Part::Gradient(0) {
        let pairs = score.expand().into_iter().zip(label.expand());
        for (value, (score, label)) in values.iter_mut().zip(pairs) {
            if score == label {
                *value = 0.0;
            }
        }
    }
}

/// The gradient is `p Σ label - label`, where the reference has `p - label`.
fn distribution(recorded: Recorded<'_>, part: Part, values: &mut [f64]) {
    let [score, label] = recorded.inputs else { return };
    let [n, k] = score.shape[..] else { return };
    if part != Part::Gradient(0) || label.shape != score.shape {
        return;
    }
    let scale = recorded.attributes["grad_scale"].as_f64().unwrap_or(1.0);
    let scale = match recorded.attributes["normalization"].as_str() {
        Some("batch") => scale / n as f64,
        _ => scale,
    };
    let (p, label) = (recorded.output.expand(), label.expand());
    for (row, labels) in label.chunks(k).enumerate() {
        // Targets that are a distribution add up to 1 but for rounding.
        let excess = labels.iter().sum::<f64>() - 1.0;
        if excess.abs() > 1e-6 {
            for at in row * k..(row + 1) * k {
                values[at] += scale * excess * p[at];
            }
        }
    }
}

#[test]
fn what_is_not_corrected_is_as_recorded() {
    let tensor = |data: &[f64]| Tensor {
        storage: Some(Storage::Dense),
        shape: vec![data.len()],
        data: data.to_vec(),
        ..Tensor::default()
    };
    let (x, output) = (tensor(&[0.5, 1.5, 0.7]), tensor(&[0.0, 1.0, 1.0]));
    let inputs = [x];
    let recorded = Recorded { attributes: &Value::Null, inputs: &inputs, output: &output };
    let values = |name: &str, part| {
        let mut deviations = Vec::new();
        let expected = corrected(&[name], recorded, part, &output, &mut deviations);
        (expected.values, deviations.len())
    };
    assert_eq!(values("rint.d.base", Part::Output), (vec![0.0, 2.0, 1.0], 1));
    assert_eq!(values("rint.d.base", Part::Gradient(0)), (vec![0.0, 1.0, 1.0], 0));
    assert_eq!(values("round.d.base", Part::Output), (vec![0.0, 1.0, 1.0], 0));
}
