//! Losses and their gradients, against the same on the CPU.

use crate::device::gpu;
use crate::near;
use sparse_core::ir::{AttributeValue, Attributes, Number};
use sparse_core::operators::{Kind, all};
use sparse_runtime::device::cuda::CudaError;
use sparse_runtime::formats::Dense;
use sparse_runtime::kernels::cuda::{CudaContext, Labels, LossFunction, LossOperands, loss};
use sparse_runtime::kernels::{Array, Context, call_kernel};

/// Scores and labels of several rows, of which some are at margins and bounds, and a weight for
/// each row.
fn operands(n_rows: usize) -> [Dense<f64>; 3] {
    let numbers = |shape: [usize; 2], bound: usize| {
        let values = (0..shape[0] * shape[1]).map(|at| (at * 37 % bound) as f64 / 4.0 - 2.0);
        Dense::new(shape, values.collect()).expect("an element for each place")
    };
    let weights = (0..n_rows).map(|row| (row % 3) as f64).collect::<Vec<_>>();
    [numbers([n_rows, 3], 23), numbers([n_rows, 3], 17), weights.into()]
}

#[test]
fn losses_and_gradients_are_those_of_the_cpu() -> Result<(), CudaError> {
    let gpu = gpu();
    let mut context = CudaContext::new(&gpu);
    let mut attributes = Attributes::default();
    attributes.set("delta", AttributeValue::Number(Number(0.75)));
    for operator in all() {
        let Kind::Loss { gradient, element: Some(_), .. } = operator.kind else { continue };
        let function = LossFunction::new(operator, &attributes).unwrap();
        // The last has more than one part.
        for n_rows in [0, 1, 70, 3000] {
            let host = operands(n_rows);
            let there = [host[0].to_gpu(&gpu)?, host[1].to_gpu(&gpu)?, host[2].to_gpu(&gpu)?];
            for weighted in [false, true] {
                let of = LossOperands {
                    scores: there[0].view(),
                    labels: Labels::Dense(there[1].view()),
                    weights: weighted.then(|| there[2].view()),
                };
                let given = host.each_ref().map(|array| Array::Dense(array.clone()));
                let given = &given[..if weighted { 3 } else { 2 }];
                let expected = |name: &str| {
                    let rule = if weighted { "dense_dense_dense" } else { "dense_dense" };
                    let given: Vec<_> = given.iter().map(Array::operand).collect();
                    let (name, mut out) =
                        (format!("{name}_{rule}"), Array::Dense(Dense::default()));
                    call_kernel(&name, &mut out, &given, &attributes, &mut Context::default())
                        .unwrap();
                    match out {
                        Array::Dense(out) => out,
                        _ => panic!("{name} is dense"),
                    }
                };
                let mut out = Dense::default();
                loss::mean(&mut out, of, function, &mut context);
                let (found, expected_loss) = (out.to_cpu()?, expected(operator.name));
                assert_eq!(found.shape(), expected_loss.shape());
                near(operator.name, found.values(), expected_loss.values(), 1e-12);
                loss::gradient(&mut out, of, function, &mut context);
                near(gradient, out.to_cpu()?.values(), expected(gradient).values(), 1e-12);
            }
        }
    }
    Ok(())
}
