//! Times on a GPU, printed as tables: nothing is asserted. `scripts/gpu-check` runs this on a real
//! one; in the emulation sizes are small and times say nothing.
//!
//! What must be read and written at least is counted, and compared with what a copy reads and
//! writes in the time. With `NNZ_TIMES=FILE` lines are added to a file, a name, sizes and seconds,
//! for which `benches/peers/gpu.py` has those of others on the same inputs.

use crate::device::{gpu, is_real};
use crate::{Logistic, LogisticBatch, LogisticOff, LogisticOffBatch};
use nnz::core::ir::Attributes;
use nnz::core::operators::find;
use nnz::core::update_rules::{LazyUpdate, UpdateRule};
use nnz::device::cuda::Gpu;
use nnz::kernels::cuda::{CudaContext, ScalarFunction};
use nnz::kernels::{dot, unary};
use nnz::model::OnGpu;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use std::fs::OpenOptions;
use std::io::Write as _;
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

/// Adds a line to the file that `NNZ_TIMES` names.
fn note(name: &str, sizes: &[usize], seconds: f64) {
    let Some(path) = std::env::var_os("NNZ_TIMES") else { return };
    let sizes: Vec<_> = sizes.iter().map(usize::to_string).collect();
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{name}\t{}\t{seconds:e}", sizes.join(" ")).unwrap();
}

/// The bytes that a copy reads and writes in a second.
fn speed_of_a_copy(gpu: &Gpu) -> f64 {
    let n = if is_real() { 1 << 26 } else { 1 << 12 };
    let array = Dense::<f32>::zeros([n]).to_gpu(gpu).unwrap();
    let abs = ScalarFunction::new(find("abs").unwrap(), &Attributes::default()).unwrap();
    let (mut out, mut context) = (Dense::default(), CudaContext::new(gpu));
    let seconds = median(gpu, || unary::cuda::stored(&mut out, array.view(), abs, &mut context));
    (2 * 4 * n) as f64 / seconds
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

    let mut out = Dense::default();
    println!("{:?}", gpu.info());
    let copy = speed_of_a_copy(&gpu);
    println!("a copy: {:.0} GB/s", copy / 1e9);
    println!("csr [{n_rows}, {n_cols}] of {} · dense; of the speed of a copy", x.nnz());
    println!(
        "{:>8} {:>10} {:>10} {:>8} {:>14} {:>10} {:>8}",
        "columns", "ms", "GB/s", "of it", "transposed ms", "GB/s", "of it"
    );
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
        let bytes = |rows: usize| (x.nnz() * (8 + 4 * width) + 4 * rows * width) as f64;
        let [of_product, of_transposed] =
            [bytes(n_rows) / product, bytes(rows.n_stored()) / transposed];
        println!(
            "{width:>8} {:>10.3} {:>10.0} {:>7.0}% {:>14.3} {:>10.0} {:>7.0}%",
            product * 1e3,
            of_product / 1e9,
            100.0 * of_product / copy,
            transposed * 1e3,
            of_transposed / 1e9,
            100.0 * of_transposed / copy
        );
        note("product", &[n_rows, n_cols, width], product);
        note("transposed", &[n_rows, n_cols, width], transposed);
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

    /// Wide and deep.
    WideDeep, WideDeepOff {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, 16] = Normal { mean: 0.0, std: 0.1 };
        param h: dense[16, 32] = Normal { mean: 0.0, std: 0.2 };
        param a: dense[32] = Zeros;
        param g: dense[32, 1] = Normal { mean: 0.0, std: 0.2 };
        param b: dense[1] = Zeros;
        let hidden = relu(dot(embedding_bag(x, t), h) + a);
        let score = dot(x, w) + dot(hidden, g) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

/// What steps are timed on.
struct Steps {
    /// The rows of a batch, the columns, the entries, and the columns that occur.
    n_rows: usize,
    n_cols: usize,
    nnz: usize,
    distinct: usize,
    /// The bytes that a copy reads and writes in a second.
    copy: f64,
}

impl Steps {
    /// The bytes that a step must read and write at least, of tables whose rows have so many
    /// elements, each with so many states: the entries, and for each the rows that it names,
    /// forward and for the update, then each weight that is touched, and its states.
    fn least_bytes(&self, widths: usize, n_states: usize) -> f64 {
        let of_entry = 2 * (8 + 4 * widths);
        (self.nnz * of_entry + 2 * self.distinct * 4 * widths * (1 + n_states)) as f64
    }

    fn time<M: Model<Element = f32>, R: UpdateRule>(
        &self,
        host: &M,
        batch: &M::Batch<'_>,
        (rule, n_states): (R, usize),
    ) {
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
        let n_cols = self.n_cols;
        let tables = M::parameters(host).into_iter().map(|of| of.shape);
        let tables = tables.filter(|shape| shape.rank() > 0 && shape.n_rows() == n_cols);
        let least = self.least_bytes(tables.map(|shape| shape.row_size()).sum(), n_states);
        let of_copy = 100.0 * least / ahead / self.copy;
        let (name, rule) = (M::NAME, R::NAME);
        note(&format!("{name} {rule}"), &[self.n_rows, n_cols], seconds);
        let (seconds, ahead) = (seconds * 1e3, ahead * 1e3);
        println!(
            "{name:>12} {rule:>10} {n_cols:>12} {seconds:>10.3} {ahead:>10.3} {of_copy:>7.0}% {n_kernels:>8}"
        );
    }
}

#[test]
#[ignore = "times, for a real GPU"]
fn steps() {
    println!(
        "steps on batches of 40 entries a row, copied from the host before each step, or ahead, during the one before it, and then what must be read and \
         written, of what a copy does in the time; with `Off` a kernel for each value of the plan"
    );
    let sizes: &[_] = if is_real() {
        &[(8192, 1 << 24), (65536, 1 << 24), (65536, 1 << 28)]
    } else {
        &[(64, 256)]
    };
    let copy = speed_of_a_copy(&gpu());
    for &(batch_size, n_cols) in sizes {
        println!("batches of {batch_size} rows");
        let [model, rule, columns] = ["model", "rule", "columns"];
        let [step, ahead, of_it, kernels] = ["ms", "ahead ms", "of copy", "kernels"];
        println!(
            "{model:>12} {rule:>10} {columns:>12} {step:>10} {ahead:>10} {of_it:>8} {kernels:>8}"
        );
        let x = matrix(batch_size, n_cols, 40);
        let y = Dense::<f32>::zeros([batch_size, 1]);
        let mut occur: Vec<_> = x.view().iter_columns().collect();
        occur.sort_unstable();
        occur.dedup();
        let of = Steps { n_rows: batch_size, n_cols, nnz: x.nnz(), distinct: occur.len(), copy };
        macro_rules! time {
            ($($Model:ident $Batch:ident),*) => {
                $(
                    let host = $Model::new(dims! { d: n_cols }, Seed(1)).unwrap();
                    let batch = $Batch { x: x.view(), y: y.view() };
                    of.time(&host, &batch, (Sgd::default(), 0));
                    of.time(&host, &batch, (AdaGrad::default(), 1));
                    let adam = Adam { lazy_update: LazyUpdate::Touched, ..Adam::default() };
                    of.time(&host, &batch, (adam, 2));
                )*
            };
        }
        time!(Logistic LogisticBatch, LogisticOff LogisticOffBatch);
        // With more its factors and their states take more than a GPU has.
        if n_cols <= 1 << 24 {
            time!(Machine MachineBatch, MachineOff MachineOffBatch);
            time!(WideDeep WideDeepBatch, WideDeepOff WideDeepOffBatch);
        }
    }
}
