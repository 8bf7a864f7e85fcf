//! Every rule of the operator table that is marked `on_gpu`, on adversarial patterns, against the
//! kernel of the CPU.
//!
//! Operators that are a formula have one kernel for all of them, which `elementwise.rs` and
//! `losses.rs` hold to formulas; of those with sparse operands the first of each family is here.

use crate::applications::{Application, applications, classes, numbers};
use crate::device::gpu;
use crate::given::{Given, operands};
use crate::near;
use sparse_core::operators::{Kind, Operator, Pattern, Rule, Signature, all};
use sparse_core::storage::Storage;
use sparse_runtime::device::cuda::CudaError;
use sparse_runtime::formats::{Ids, RowSparseView};
use sparse_runtime::kernels::cuda::CudaContext;
use sparse_runtime::kernels::{Array, Context, Operand, call_kernel, cuda};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::mem::discriminant;

/// At most so many shapes and attributes of a rule: a launch in the emulation takes a fraction of a
/// millisecond.
const MOST: usize = 2;

#[test]
fn every_rule_is_computed_as_on_the_cpu() -> Result<(), CudaError> {
    let mut context = CudaContext::new(&gpu());
    let (mut marked, mut run) = (BTreeSet::new(), BTreeSet::new());
    let mut families: Vec<(String, Vec<&str>)> = Vec::new();
    let mut is_first = |operator: &Operator, family: &dyn Debug| {
        let rules = operator.storage.iter().map(Rule::text).collect();
        let family = (format!("{family:?}"), rules);
        let new = !families.contains(&family);
        families.push(family);
        new
    };
    let has_kernels = |operator: &&Operator| match operator.kind {
        Kind::Kernel
        | Kind::Loss { element: None, .. }
        | Kind::LossGradient("softmax_cross_entropy") => true,
        Kind::Binary(family, _) => is_first(operator, &family),
        Kind::Reduction(reduction) => is_first(operator, &reduction.combine),
        _ => false,
    };
    // A number is an operand of formulas only.
    let of_arrays = |signature: &Signature| !signature.operands.contains(&Pattern::Scalar);
    for operator in all().filter(has_kernels) {
        let of_formula = matches!(operator.kind, Kind::Binary(..));
        let signatures = operator.storage.iter().flat_map(Rule::signatures);
        for signature in signatures.filter(|signature| !of_formula || of_arrays(signature)) {
            for result in signature.results().filter(|_| signature.on_gpu) {
                let name = format!("{}_{}", operator.name, signature.kernel(result));
                let applications = applications(operator, &signature, result);
                let step = applications.len().div_ceil(MOST).max(1);
                for application in applications.iter().step_by(step) {
                    let of = Of { operator, signature: &signature, result, name: &name };
                    if of.check(application, &mut context)? {
                        run.insert(name.clone());
                    }
                }
                marked.insert(name);
            }
        }
    }
    let missed: Vec<_> = marked.difference(&run).collect();
    assert!(missed.is_empty(), "no test reaches {missed:?}");
    Ok(())
}

/// A kernel.
struct Of<'a> {
    operator: &'static Operator,
    signature: &'a Signature,
    result: Storage,
    name: &'a str,
}

impl Of<'_> {
    /// Calls both kernels on operands of several patterns. False where there are none.
    fn check(
        &self,
        application: &Application,
        context: &mut CudaContext,
    ) -> Result<bool, CudaError> {
        let Application { shapes, attributes } = application;
        let what = format!("{} {shapes:?} {attributes:?}", self.name);
        let mut numbers = numbers(&what);
        let classes = classes(self.operator, attributes, shapes);
        let each = self.signature.operands.iter().zip(shapes);
        let choices: Vec<Vec<Given>> = each
            .map(|(pattern, shape)| operands(*pattern, shape, classes, true, &mut numbers))
            .collect();
        // Each choice of each operand once: the operands' patterns matter by themselves.
        let most = choices.iter().map(Vec::len).max().unwrap_or(0);
        for choice in 0..most {
            let given: Vec<&Given> = choices.iter().map(|of| &of[choice % of.len()]).collect();
            let arrays: Vec<Option<Array<f32>>> = given.iter().map(|given| given.array()).collect();
            let operands: Vec<Operand<'_, f32>> = given
                .iter()
                .zip(&arrays)
                .zip(&self.signature.operands)
                .map(|((given, array), pattern)| match (given, array, pattern) {
                    (Given::Scalar(number), ..) => Operand::Scalar(*number as f32),
                    (_, Some(Array::Dense(table)), Pattern::Array(Storage::RowSparse, _)) => {
                        let all = RowSparseView::all(*table.shape(), table.values());
                        Operand::RowSparse(all.unwrap())
                    }
                    (_, array, _) => array.as_ref().unwrap().operand(),
                })
                .collect();
            let mut expected = Array::Dense(Default::default());
            let what = format!("{what} on {given:?}");
            call_kernel(self.name, &mut expected, &operands, attributes, &mut Context::default())
                .expect(&what);
            let (operator, name, result) = (self.operator, self.name, self.result);
            let mut call = || {
                cuda::call_kernel(operator, name, result, &operands, attributes, context)
                    .map(|found| found.expect(&what))
            };
            let found = call()?;
            same(&what, &found, &expected);
            if choice == 0 {
                let bits = |array| values(array).into_iter().map(f32::to_bits).collect::<Vec<_>>();
                assert_eq!(bits(&found), bits(&call()?), "{what}");
            }
        }
        Ok(most > 0)
    }
}

fn values(array: &Array<f32>) -> Vec<f32> {
    match array {
        Array::Dense(array) => array.values().to_vec(),
        Array::Csr(array) => array.values().to_vec(),
        Array::RowSparse(array) => array.values().to_vec(),
        // Small enough to be numbers.
        Array::Ids(Ids::U64(ids)) => ids.values().iter().map(|id| *id as f32).collect(),
        other => panic!("no kernel gives {other:?}"),
    }
}

pub(crate) fn same(what: &str, found: &Array<f32>, expected: &Array<f32>) {
    assert_eq!(found.storage(), expected.storage(), "{what}");
    assert_eq!(found.shape(), expected.shape(), "{what}");
    match (found, expected) {
        (Array::Csr(found), Array::Csr(expected)) => {
            assert_eq!(found.indptr(), expected.indptr(), "{what}");
            assert_eq!(found.columns(), expected.columns(), "{what}");
        }
        (Array::RowSparse(found), Array::RowSparse(expected)) => {
            assert_eq!(found.indices(), expected.indices(), "{what}");
        }
        (Array::Ids(found), Array::Ids(expected)) => assert_eq!(found, expected, "{what}"),
        (found, expected) => {
            assert_eq!(discriminant(found), discriminant(expected), "{what}");
        }
    }
    near(what, &values(found), &values(expected), 4e-6);
}
