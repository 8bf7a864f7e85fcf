//! Every kernel of the table allocates nothing when it is called again: the steady state of
//! training.

use super::applications::{Application, applications, classes, numbers};
use super::given::{Given, operands};
use crate::allocation::allocations;
use sparse_core::ir::Attributes;
use sparse_core::operators::{self, Operator, Pattern};
use sparse_core::storage::Storage;
use sparse_runtime::formats::{Dense, RowSparseView};
use sparse_runtime::kernels::{Array, Context, Operand, call_kernel};

#[test]
fn no_kernel_allocates_when_it_is_called_again() {
    let mut context = Context::default();
    for operator in operators::all() {
        for rule in operator.storage {
            let signature = rule.signature();
            for result in signature.results() {
                let name = format!("{}_{}", operator.name, signature.kernel(result));
                for application in applications(operator, &signature, result) {
                    let given = largest(operator, &signature.operands, &application);
                    let call = |out: &mut Array<f32>, context: &mut Context| {
                        let views: Vec<_> = given.iter().zip(&signature.operands).collect();
                        let views: Vec<_> = views.into_iter().map(operand).collect();
                        count(&name, out, &views, &application.attributes, context)
                    };
                    let mut out = Array::Dense(Dense::default());
                    call(&mut out, &mut context);
                    let allocations = call(&mut out, &mut context);
                    assert_eq!(allocations, 0, "{name} {application:?}");
                }
            }
        }
    }
}

/// The number of allocations of a call.
fn count(
    name: &str,
    out: &mut Array<f32>,
    operands: &[Operand<'_, f32>],
    attributes: &Attributes,
    context: &mut Context,
) -> u64 {
    let mut called = None;
    let count = allocations(|| called = call_kernel(name, out, operands, attributes, context));
    assert!(called.is_some(), "{name} cannot be called");
    count
}

/// Operands that store everything.
fn largest(
    operator: &Operator,
    patterns: &[Pattern],
    application: &Application,
) -> Vec<(Option<Array<f32>>, f32)> {
    let shapes = &application.shapes;
    let classes = classes(operator, &application.attributes, shapes);
    let mut numbers = numbers("largest");
    let each = patterns.iter().zip(shapes).map(|(pattern, shape)| {
        let mut choices = operands(*pattern, shape, classes, true, &mut numbers);
        let given = match pattern {
            Pattern::Array(Storage::Csr, _) => choices.swap_remove(1),
            _ => choices.remove(choices.len() - 1),
        };
        match given {
            Given::Scalar(number) => (None, number as f32),
            given => (given.array(), 0.0),
        }
    });
    each.collect()
}

fn operand<'a>(
    ((array, number), pattern): (&'a (Option<Array<f32>>, f32), &Pattern),
) -> Operand<'a, f32> {
    match (array, pattern) {
        (None, _) => Operand::Scalar(*number),
        (Some(Array::Dense(table)), Pattern::Array(Storage::RowSparse, _)) => {
            Operand::RowSparse(RowSparseView::all(*table.shape(), table.values()).unwrap())
        }
        (Some(array), _) => array.operand(),
    }
}
