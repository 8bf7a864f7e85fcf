//! The recorded cases on a GPU, emulated or with `NNZ_TEST_GPU=1` a real one, through the harness
//! of the host's.
//!
//! Each value of a graph is computed by the GPU's kernel, and held to what the host's kernel makes
//! of the same operands: the same pattern, and values within 1e-5 of them. What comes of it is held
//! to the recorded values like the host's. A trajectory is held to the recorded one and, after
//! every epoch, to that of the same model on the host. A real GPU follows it to its end, an
//! emulated one for the epochs within [`STEPS_IN_EMULATION`].
//!
//! What a GPU does not have is counted and named; [`ON_THE_HOST`] says why files have no case for
//! it.

#[path = "../../sparse-runtime/tests/cuda/device.rs"]
mod device;

use crate::folder::say;
use crate::golden::case::cases;
use crate::golden::compare::Tolerance;
use crate::golden::device::{Device, Failure, Inputs};
use crate::golden::models::Visit;
use crate::golden::operators::FILES;
use crate::golden::tally::finish;
use crate::golden::{graphs, noncanonical, operators, refusals, svrg, train};
use nnz::core::compile::Compiled;
use nnz::core::element::Float;
use nnz::device::cuda::Gpu;
use nnz::interpreter::{Call, Values, evaluate_by};
use nnz::kernels::cuda::{self, CudaContext};
use nnz::kernels::{Array, Context, call_kernel};
use nnz::model::OnGpu;
use nnz::prelude::*;
use std::cell::RefCell;

/// The other files of cases, and why a GPU has nothing to do with them.
const ON_THE_HOST: &[(&str, &str)] = &[
    ("create", "arrays are checked when they are built, which is on the host"),
    ("infer", "the compiler alone"),
    ("kvstore", "stores are on the host"),
    ("libsvm", "files are read on the host"),
    ("metrics", "metrics are computed of outputs that came back"),
    ("opt_adam", "updates without a model: `golden_optimizers` of the runtime has them on a GPU"),
    ("opt_adaptive", "as those of `opt_adam`"),
    ("opt_dense", "as those of `opt_adam`"),
    ("opt_sgd", "as those of `opt_adam`"),
];

/// The trajectories of [`train`].
const TRAINED: [&str; 3] = ["train_linear", "train_classify", "train_models"];

/// An emulated GPU makes so many steps of a trajectory at most: its first ones, which are recorded
/// by themselves, and epochs that end within them.
const STEPS_IN_EMULATION: usize = 32;

#[test]
fn operators_of_every_file() {
    let there = There::new();
    for file in FILES {
        finish(operators::judged(file, &there));
    }
}

#[test]
fn graphs_of_operators() {
    finish(graphs::judged(&There::new()));
}

#[test]
fn what_the_reference_refuses_or_misreads() {
    let there = There::new();
    finish(refusals::judged(&there));
    finish(noncanonical::judged(&there));
}

#[test]
fn trajectories() {
    let there = There::new();
    for file in TRAINED {
        train::run_file(file, &there);
    }
    svrg::run_all(&there);
}

#[test]
fn every_file_is_run_or_named() {
    let others = ["graphs", "refusals", "noncanonical", svrg::FILE];
    let run = FILES.iter().chain(&others).chain(&TRAINED);
    let Some(path) = crate::folder::find("NNZ_GOLDEN", "shared/golden", "dot.jsonl") else {
        return;
    };
    let mut text = String::new();
    for entry in path.parent().unwrap().read_dir().unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(file) = name.strip_suffix(".jsonl") else { continue };
        if run.clone().any(|known| *known == file) {
            continue;
        }
        let reason = ON_THE_HOST.iter().find(|(known, _)| *known == file);
        let (_, why) = reason.unwrap_or_else(|| panic!("`{file}` is neither run nor named"));
        let count = cases(file).map_or(0, |cases| cases.len());
        text += &format!("\n  {file}: {count} ({why})");
    }
    say(&format!("golden{}: cases that are not for it:{text}", There::SUFFIX));
}

/// A GPU, and a place where its kernels run.
struct There {
    gpu: Gpu,
    context: RefCell<CudaContext>,
}

impl There {
    fn new() -> Self {
        let gpu = device::gpu();
        There { context: RefCell::new(CudaContext::new(&gpu)), gpu }
    }
}

impl Device for There {
    const SUFFIX: &'static str = " on a GPU";
    const IS_GPU: bool = true;

    fn evaluate<'a>(
        &self,
        compiled: &'a Compiled,
        inputs: &Inputs,
    ) -> Result<Values<'a, f32>, Failure> {
        let mut on_host = Context::default();
        evaluate_by(compiled, inputs, |call: &Call<'_, '_, f32>, out| {
            let Call { operator, kernel, result, operands, attributes } = *call;
            if operator.gpu_family(kernel).is_none() {
                return Err(Failure::NotThere(format!("a kernel `{kernel}`")));
            }
            let context = &mut *self.context.borrow_mut();
            let found = cuda::call_kernel(operator, kernel, result, operands, attributes, context)
                .map_err(|error| format!("{kernel}: {error}"))?
                .ok_or_else(|| format!("{kernel} does not take {operands:?}"))?;
            if call_kernel(kernel, out, operands, attributes, &mut on_host).is_none() {
                return Ok(None);
            }
            same(kernel, &found, out)?;
            *out = found;
            Ok(Some(()))
        })
    }

    fn visit<M: Model<Element = f32> + 'static>(
        &self,
        new: &dyn Fn() -> nnz::Result<M>,
        visit: &mut impl Visit,
    ) -> Result<(), Failure> {
        // What the trajectory there is compared with.
        visit.visit(new)?;
        visit.visit(&|| Ok(OnGpu::try_new(&new()?, &self.gpu)?))
    }

    fn most_steps(&self) -> usize {
        if device::is_real() { usize::MAX } else { STEPS_IN_EMULATION }
    }
}

/// Holds a result of a GPU's kernel to that of the host's.
fn same(kernel: &str, found: &Array<f32>, expected: &Array<f32>) -> Result<(), String> {
    let is_same = found.shape() == expected.shape()
        && match (found, expected) {
            (Array::Dense(_), Array::Dense(_)) => true,
            (Array::Csr(a), Array::Csr(b)) => {
                a.indptr() == b.indptr() && a.columns() == b.columns()
            }
            (Array::RowSparse(a), Array::RowSparse(b)) => a.indices() == b.indices(),
            (Array::Ids(a), Array::Ids(b)) => a == b,
            _ => false,
        };
    if !is_same {
        return Err(format!("{kernel}: {found:?} on a GPU, {expected:?} on the host"));
    }
    let values = |array: &Array<f32>| -> Vec<f64> {
        let values = match array {
            Array::Dense(array) => array.values(),
            Array::Csr(array) => array.values(),
            Array::RowSparse(array) => array.values(),
            Array::Ids(_) | Array::Unit(_) => &[],
        };
        values.iter().map(|value| value.as_f64()).collect()
    };
    let what = format!("{kernel} on a GPU, against the host's");
    Tolerance::EXACT.compare(&what, values(found), &values(expected))
}
