//! The formulas of losses, which other devices compile, against the kernels of the CPU.

use sparse_core::ir::{AttributeValue, Attributes, Number};
use sparse_core::operators::{Kind, Operator, all};
use sparse_runtime::formats::Dense;
use sparse_runtime::kernels::{Array, Context, call_kernel};

/// What a kernel of a loss says of one score and its label.
fn of_kernel(name: &str, attributes: &Attributes, score: f64, label: f64) -> f64 {
    let operands = [score, label].map(|value| Array::Dense(Dense::from_rows(&[[value]])));
    let operands = operands.each_ref().map(Array::operand);
    let mut out = Array::Dense(Dense::default());
    call_kernel(
        &format!("{name}_dense_dense"),
        &mut out,
        &operands,
        attributes,
        &mut Context::default(),
    )
    .unwrap();
    let Array::Dense(out) = out else { panic!("{name} is not dense") };
    out.values()[0]
}

fn hold(operator: &Operator, gradient: &str, [loss, slope]: [&str; 2]) {
    let mut attributes = Attributes::default();
    if operator.attribute("delta").is_some() {
        attributes.set("delta", AttributeValue::Number(Number(0.75)));
    }
    for score in [-40.0, -1.5, -0.0, 0.25, 1.0, 3.0, 30.0, f64::NAN] {
        for label in [-1.0, 0.0, 0.25, 1.0, 4.0] {
            let variable = |name: &str| match name {
                "s" => Some(score),
                "t" => Some(label),
                _ => None,
            };
            for (kernel, formula) in [(operator.name, loss), (gradient, slope)] {
                let found = operator.scalar(formula, &attributes, &variable).unwrap();
                let expected = of_kernel(kernel, &attributes, score, label);
                let near = (found - expected).abs() <= 1e-14 * expected.abs().max(1.0);
                let both_nan = found.is_nan() && expected.is_nan();
                assert!(near || both_nan, "{kernel}({score}, {label}): {found} and {expected}");
            }
        }
    }
}

#[test]
fn formulas_of_losses_are_their_kernels() {
    for operator in all() {
        if let Kind::Loss { gradient, element: Some(element), .. } = operator.kind {
            hold(operator, gradient, [element.loss, element.slope]);
        }
    }
}
