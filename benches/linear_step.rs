//! The emitted training step against the loop that one would write by hand for the same model: logistic regression by
//! SGD on 200,000 rows of 39 hashed features among 2²⁰, one thread.
//!
//! ```text
//! cargo bench --bench linear_step [-- ROUNDS [BATCH…]]
//! ```
//!
//! Both run over the same arrays, in turn, an epoch each, in one process; rates and their ratio are medians over the
//! rounds.

use nnz::data::{ColumnValues, synthetic};
use nnz::formats::ColumnIdsView;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use std::process::ExitCode;
use std::time::Instant;

graph! {
    /// Logistic regression without bias, as the loops below compute it.
    pub model Logistic {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output score;
    }
}

const ROWS: usize = 200_000;
const FEATURES: usize = 1 << 20;
const FIELDS: usize = 39;
const LEARNING_RATE: f32 = 0.05;

fn main() -> ExitCode {
    // Cargo passes `--bench`.
    let numbers: Vec<usize> = std::env::args().filter_map(|text| text.parse().ok()).collect();
    let rounds = numbers.first().copied().unwrap_or(31).max(1);
    let batches = if numbers.len() > 1 { &numbers[1..] } else { &[1, 32, 1024] };
    match run(rounds, batches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("linear_step: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(rounds: usize, batches: &[usize]) -> Result<(), Box<dyn std::error::Error>> {
    let data = synthetic::click_log(ROWS, FEATURES, FIELDS, 42)?;
    let arrays = Arrays::of(&data).ok_or("the generated data is not csr with u32 columns")?;
    println!("{ROWS} rows of {FIELDS} among {FEATURES} features, {rounds} rounds of an epoch each");
    println!("| batch | by hand, M samples/s | emitted, M samples/s | ratio | losses |");
    println!("|---|---|---|---|---|");
    for &batch in batches {
        let mut hand = ByHand { weights: vec![0.0; FEATURES], steps: vec![0.0; batch] };
        let mut emitted = Emitted::new(batch)?;
        let mut rates = [const { Vec::new() }; 2];
        let mut ratios = Vec::new();
        for round in 0..rounds {
            let by_hand = timed(|| hand.epoch(&arrays, batch)).0;
            let (by_model, result) = timed(|| emitted.epoch(&data, round as u64));
            result?;
            for (rates, seconds) in rates.iter_mut().zip([by_hand, by_model]) {
                rates.push(ROWS as f64 / seconds / 1e6);
            }
            ratios.push(by_hand / by_model);
        }
        let losses = [&hand.weights[..], emitted.model.w.values()].map(|w| mean_loss(&arrays, w));
        let [by_hand, by_model] = rates.map(median);
        println!(
            "| {batch} | {by_hand:.2} | {by_model:.2} | {:.2} | {:.6} {:.6} |",
            median(ratios),
            losses[0],
            losses[1]
        );
        // The same sums in another order, and no more.
        if (losses[0] - losses[1]).abs() > 1e-3 * losses[0] {
            return Err(format!("batch {batch}: the two have learnt different models").into());
        }
    }
    Ok(())
}

/// The arrays that both read.
struct Arrays<'a> {
    indptr: &'a [u64],
    columns: &'a [u32],
    values: &'a [f32],
    labels: &'a [f32],
}

impl<'a> Arrays<'a> {
    fn of(data: &'a Dataset) -> Option<Self> {
        let x = data.features()?;
        match (x.columns(), data.labels()?) {
            (ColumnIdsView::U32(columns), ColumnValues::Dense(labels)) => Some(Arrays {
                indptr: x.indptr(),
                columns,
                values: x.values(),
                labels: labels.values(),
            }),
            _ => None,
        }
    }

    #[inline(always)]
    fn row(&self, row: usize) -> (&'a [u32], &'a [f32]) {
        let range = self.indptr[row] as usize..self.indptr[row + 1] as usize;
        (&self.columns[range.clone()], &self.values[range])
    }
}

/// The loops by hand, and what they keep from epoch to epoch.
struct ByHand {
    weights: Vec<f32>,
    /// Of each row of a batch.
    steps: Vec<f32>,
}

impl ByHand {
    fn epoch(&mut self, x: &Arrays<'_>, batch: usize) {
        if batch == 1 {
            hand_written_rows(x, &mut self.weights);
        } else {
            hand_written_batches(x, &mut self.weights, &mut self.steps, batch);
        }
    }
}

/// Gather, dot, sigmoid, scatter.
#[inline(never)]
fn hand_written_rows(x: &Arrays<'_>, weights: &mut [f32]) {
    for row in 0..x.labels.len() {
        let (columns, values) = x.row(row);
        let step = LEARNING_RATE * (sigmoid(product(columns, values, weights)) - x.labels[row]);
        subtract(columns, values, weights, step);
    }
}

/// The same on batches: all gathers before the first scatter.
#[inline(never)]
fn hand_written_batches(x: &Arrays<'_>, weights: &mut [f32], steps: &mut [f32], batch: usize) {
    let n_rows = x.labels.len();
    for first in (0..n_rows).step_by(batch) {
        let rows = first..n_rows.min(first + batch);
        let rate = LEARNING_RATE / rows.len() as f32;
        for (row, step) in rows.clone().zip(&mut *steps) {
            let (columns, values) = x.row(row);
            *step = rate * (sigmoid(product(columns, values, weights)) - x.labels[row]);
        }
        for (row, step) in rows.zip(&*steps) {
            let (columns, values) = x.row(row);
            subtract(columns, values, weights, *step);
        }
    }
}

/// Four sums, so that an addition need not wait for the one before it: 1.2 times as fast as one sum.
#[inline(always)]
fn product(columns: &[u32], values: &[f32], weights: &[f32]) -> f32 {
    let mut sums = [0.0f32; 4];
    let (column_chunks, columns) = columns.as_chunks::<4>();
    let (value_chunks, values) = values.as_chunks::<4>();
    for (columns, values) in column_chunks.iter().zip(value_chunks) {
        for lane in 0..4 {
            // SAFETY: `Csr` holds columns below its width, which is `FEATURES`, the number of weights.
            sums[lane] += values[lane] * unsafe { weights.get_unchecked(columns[lane] as usize) };
        }
    }
    for ((column, value), sum) in columns.iter().zip(values).zip(&mut sums) {
        // SAFETY: as above.
        *sum += value * unsafe { weights.get_unchecked(*column as usize) };
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

#[inline(always)]
fn subtract(columns: &[u32], values: &[f32], weights: &mut [f32], step: f32) {
    for (column, value) in columns.iter().zip(values) {
        // SAFETY: as above.
        unsafe { *weights.get_unchecked_mut(*column as usize) -= step * value };
    }
}

#[inline(always)]
fn sigmoid(score: f32) -> f32 {
    1.0 / (1.0 + (-score).exp())
}

/// What `examples/train` runs, from the same weights, with the same rate.
struct Emitted {
    model: Logistic,
    trainer: Trainer<'static, Sgd>,
    updater: Updater<Sgd, f32>,
}

impl Emitted {
    fn new(batch: usize) -> Result<Self> {
        let model = Logistic::new(dims! { d: FEATURES }, Seed(0))?;
        let sgd = Sgd { learning_rate: f64::from(LEARNING_RATE), ..Sgd::default() };
        let trainer = Trainer::new(sgd).batch_size(batch).shuffle(false).progress(Progress::Silent);
        let updater = trainer.updater(&model)?;
        Ok(Emitted { model, trainer, updater })
    }

    fn epoch(&mut self, data: &Dataset, epoch: u64) -> Result<()> {
        let epochs = epoch..epoch + 1;
        self.trainer.fit_epochs(&mut self.model, &mut self.updater, data, epochs)?;
        Ok(())
    }
}

/// The mean logistic loss, in `f64`.
fn mean_loss(x: &Arrays<'_>, weights: &[f32]) -> f64 {
    let losses = x.labels.iter().enumerate().map(|(row, &label)| {
        let (columns, values) = x.row(row);
        let score = f64::from(product(columns, values, weights));
        score.max(0.0) + (-score.abs()).exp().ln_1p() - f64::from(label) * score
    });
    losses.sum::<f64>() / x.labels.len() as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The seconds that something takes: those that this thread has a processor, where the system tells, so that neighbours
/// who want it too disturb less.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let (passed, processor) = (Instant::now(), processor_seconds());
    let result = work();
    let seconds = match (processor, processor_seconds()) {
        (Some(start), Some(end)) => end - start,
        _ => passed.elapsed().as_secs_f64(),
    };
    (seconds, result)
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn processor_seconds() -> Option<f64> {
    // SAFETY: the signature is that of POSIX, with `timespec` as two numbers of 64 bits.
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    }
    const THREAD_CPUTIME: i32 = 3;
    let mut time = [0; 2];
    // SAFETY: where a pointer has 64 bits, Linux's `timespec` is two of 64 bits; it is written and not kept.
    let status = unsafe { clock_gettime(THREAD_CPUTIME, &mut time) };
    (status == 0).then(|| time[0] as f64 + time[1] as f64 / 1e9)
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn processor_seconds() -> Option<f64> {
    None
}
