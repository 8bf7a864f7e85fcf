//! Times on a GPU, printed as tables: nothing is asserted. `scripts/gpu-check` runs this on a real one; in the emulation sizes are small
//! and times say nothing.

use crate::device::{gpu, is_real};
use crate::{Logistic, LogisticBatch, LogisticOff, LogisticOffBatch};
use nnz::core::ir::Attributes;
use nnz::core::operators::find;
use nnz::core::update_rules::UpdateRule;
use nnz::device::cuda::Gpu;
use nnz::kernels::cuda::{CudaContext, ScalarFunction};
use nnz::kernels::{dot, unary};
use nnz::model::OnGpu;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use std::time::Instant;

/// The median time of some calls, in seconds, each waited for.
fn median(gpu: &Gpu, mut call: impl FnMut()) -> f64 {
    call();
    gpu.synchronize().unwrap();
    let mut times: Vec<f64> = (0..if is_real() { 21 } else { 1 })
        .map(|_| {
            let start = Instant::now();
            call();
            gpu.synchronize().unwrap();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A matrix whose columns are spread by a hash of the entry.
fn matrix(n_rows: usize, n_cols: usize, per_row: usize) -> Csr {
    let rows = (0..n_rows).map(|row| {
        let hash = |entry: usize| {
            let mixed = ((row * per_row + entry) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            // An entry for each part of the columns, so that they ascend.
            let part = n_cols / per_row;
            (entry * part + (mixed >> 32) as usize % part, 1.0f32)
        };
        (0..per_row).map(hash).collect::<Vec<_>>()
    });
    Csr::from_rows(n_cols, rows).unwrap()
}

#[test]
#[ignore = "times, for a real GPU"]
fn products() {
    let gpu = gpu();
    let mut context = CudaContext::new(&gpu);
    let (n_rows, n_cols) = if is_real() { (1 << 17, 1 << 20) } else { (64, 128) };
    let x = matrix(n_rows, n_cols, 40);
    let there = x.to_gpu(&gpu).unwrap();

    let array = Dense::<f32>::zeros([n_cols, 64]).to_gpu(&gpu).unwrap();
    let abs = ScalarFunction::new(find("abs").unwrap(), &Attributes::default()).unwrap();
    let mut out = Dense::default();
    let seconds = median(&gpu, || unary::cuda::stored(&mut out, array.view(), abs, &mut context));
    println!("{:?}", gpu.info());
    println!("a copy: {:.0} GB/s", (2 * 4 * n_cols * 64) as f64 / seconds / 1e9);
    println!("csr [{n_rows}, {n_cols}] of {} · dense", x.nnz());
    println!("{:>8} {:>10} {:>10} {:>14} {:>10}", "columns", "ms", "GB/s", "transposed ms", "GB/s");
    for width in [1, 4, 16, 32, 64, 128, 256] {
        let right = Dense::<f32>::zeros([n_cols, width]).to_gpu(&gpu).unwrap();
        let left = Dense::<f32>::zeros([n_rows, width]).to_gpu(&gpu).unwrap();
        let mut rows = RowSparse::default();
        let product = median(&gpu, || {
            dot::cuda::csr_dense(&mut out, there.view(), right.view(), false, &mut context);
        });
        let transposed = median(&gpu, || {
            let (x, left) = (there.view(), left.view());
            dot::cuda::csr_transposed_dense(&mut rows, x, left, false, &mut context);
        });
        // A value, an id and a row of the right side for each entry; a row for each of the result.
        let bytes = |rows: usize| (x.nnz() * (8 + 4 * width) + 4 * rows * width) as f64 / 1e9;
        println!(
            "{width:>8} {:>10.3} {:>10.0} {:>14.3} {:>10.0}",
            product * 1e3,
            bytes(n_rows) / product,
            transposed * 1e3,
            bytes(rows.n_stored()) / transposed
        );
    }
}

twins! {
    /// A factorization machine, as in the benches of the host.
    Machine, MachineOff {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 16] = Normal { mean: 0.0, std: 0.1 };
        param b: dense[1] = Zeros;
        let score = dot(x, w) + pairwise_interaction(x, v) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn time_steps<M: Model<Element = f32>, R: UpdateRule>(host: &M, batch: &M::Batch<'_>, rule: R) {
    let mut model = OnGpu::new(host, &gpu()).unwrap();
    let gpu = model.gpu().clone();
    let mut updater = Updater::for_model(rule, &model).unwrap();
    updater.set_records_outputs(false);
    let mut step = || {
        model.train_step(batch, &mut updater).unwrap();
    };
    let n_kernels = gpu.trace(&mut step).len();
    let seconds = median(&gpu, step);
    model.take_batch(batch).unwrap();
    let ahead = median(&gpu, || {
        let take = |model: &mut OnGpu<M>| model.take_batch(batch).unwrap();
        model.step_on_taken(&mut updater, None, take).unwrap();
    });
    let n_cols = M::parameters(host)[0].shape.n_rows();
    let (name, rule, seconds, ahead) = (M::NAME, R::NAME, seconds * 1e3, ahead * 1e3);
    println!("{name:>12} {rule:>10} {n_cols:>12} {seconds:>10.3} {ahead:>10.3} {n_kernels:>8}");
}

#[test]
#[ignore = "times, for a real GPU"]
fn steps() {
    println!(
        "steps on batches of 40 entries a row, copied from the host before each step, or ahead, during the one before it; with `Off` a kernel for \
         each value of the plan"
    );
    let sizes: &[_] = match is_real() {
        true => &[(8192, 1 << 24), (65536, 1 << 24), (65536, 1 << 28)],
        false => &[(64, 256)],
    };
    for &(batch_size, n_cols) in sizes {
        println!("batches of {batch_size} rows");
        let [model, rule, columns] = ["model", "rule", "columns"];
        let [step, ahead, kernels] = ["ms", "ahead ms", "kernels"];
        println!("{model:>12} {rule:>10} {columns:>12} {step:>10} {ahead:>10} {kernels:>8}");
        let x = matrix(batch_size, n_cols, 40);
        let y = Dense::<f32>::zeros([batch_size, 1]);
        macro_rules! time {
            ($($Model:ident $Batch:ident),*) => {
                $(
                    let host = $Model::new(dims! { d: n_cols }, Seed(1)).unwrap();
                    let batch = $Batch { x: x.view(), y: y.view(), ..Default::default() };
                    time_steps(&host, &batch, Sgd::default());
                    time_steps(&host, &batch, AdaGrad::default());
                )*
            };
        }
        time!(Logistic LogisticBatch, LogisticOff LogisticOffBatch);
        // With more its factors and their states take more than a GPU has.
        if n_cols <= 1 << 24 {
            time!(Machine MachineBatch, MachineOff MachineOffBatch);
        }
    }
}
