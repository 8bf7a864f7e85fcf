//! The emitted training step against the loop that one would write by hand for the same model: logistic regression by
//! SGD on 200,000 rows of 39 hashed features among 2²⁰, one thread.
//!
//! ```text
//! cargo bench --bench linear_step [-- ROUNDS [BATCH…]]
//! ```
//!
//! Both run over the same arrays, in turn, in one process. Rates are medians over the rounds; where the system tells
//! the time that a thread has had a processor, rates are by that clock, which neighbours disturb less.

use nnz::data::{ColumnValues, synthetic};
use nnz::formats::ColumnIdsView;
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
/// Epochs of one measurement, so that it takes long against the tick of the clock.
const EPOCHS: u64 = 5;
const LEARNING_RATE: f32 = 0.05;

fn main() -> ExitCode {
    // Cargo passes `--bench`.
    let numbers: Vec<usize> = std::env::args().filter_map(|text| text.parse().ok()).collect();
    let rounds = numbers.first().copied().unwrap_or(7).max(1);
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
    println!(
        "{ROWS} rows of {FIELDS} among {FEATURES} features; {rounds} rounds of {EPOCHS} epochs"
    );
    println!(
        "| batch | by hand, M samples/s | emitted, M samples/s | ratio | loss by hand | loss emitted |"
    );
    println!("|---|---|---|---|---|---|");
    for &batch in batches {
        let mut rates = [const { Vec::new() }; 2];
        let mut losses = [0.0; 2];
        for _ in 0..rounds {
            let (seconds, loss) = by_hand(&arrays, batch);
            rates[0].push(samples() / seconds / 1e6);
            losses[0] = loss;
            let (seconds, loss) = emitted(&data, &arrays, batch)?;
            rates[1].push(samples() / seconds / 1e6);
            losses[1] = loss;
        }
        let mut ratios: Vec<f64> =
            rates[0].iter().zip(&rates[1]).map(|(hand, emitted)| emitted / hand).collect();
        let [hand, emitted] = rates.map(|mut rates| median(&mut rates));
        println!(
            "| {batch} | {hand:.2} | {emitted:.2} | {:.2} | {:.6} | {:.6} |",
            median(&mut ratios),
            losses[0],
            losses[1]
        );
        // Sums in another order, and no more.
        if (losses[0] - losses[1]).abs() > 1e-4 * losses[0] {
            return Err(format!("batch {batch}: the two have learnt different models").into());
        }
    }
    Ok(())
}

fn samples() -> f64 {
    ROWS as f64 * EPOCHS as f64
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

/// Seconds, and the mean loss of the weights after the last epoch.
fn by_hand(x: &Arrays<'_>, batch: usize) -> (f64, f64) {
    let mut weights = vec![0.0f32; FEATURES];
    let clock = Clock::start();
    for _ in 0..EPOCHS {
        if batch == 1 {
            hand_written_rows(x, &mut weights);
        } else {
            hand_written_batches(x, &mut weights, batch);
        }
    }
    (clock.seconds(), mean_loss(x, &weights))
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
fn hand_written_batches(x: &Arrays<'_>, weights: &mut [f32], batch: usize) {
    let mut steps = vec![0.0f32; batch];
    let n_rows = x.labels.len();
    for first in (0..n_rows).step_by(batch) {
        let rows = first..n_rows.min(first + batch);
        let rate = LEARNING_RATE / rows.len() as f32;
        for (row, step) in rows.clone().zip(&mut steps) {
            let (columns, values) = x.row(row);
            *step = rate * (sigmoid(product(columns, values, weights)) - x.labels[row]);
        }
        for (row, step) in rows.zip(&steps) {
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
fn emitted(data: &Dataset, x: &Arrays<'_>, batch: usize) -> Result<(f64, f64)> {
    let mut model = Logistic::new(dims! { d: FEATURES }, Seed(0))?;
    let sgd = Sgd { learning_rate: f64::from(LEARNING_RATE), ..Sgd::default() };
    let mut trainer = Trainer::new(sgd)
        .batch_size(batch)
        .epochs(EPOCHS)
        .shuffle(false)
        .progress(Progress::Silent);
    // A fresh table's pages are mapped by both inside of their time.
    let clock = Clock::start();
    trainer.fit(&mut model, data)?;
    Ok((clock.seconds(), mean_loss(x, model.w.values())))
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

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The time that this thread has had a processor, where the system tells; else the time that has passed.
struct Clock {
    passed: Instant,
    processor: Option<f64>,
}

impl Clock {
    fn start() -> Self {
        Clock { passed: Instant::now(), processor: processor_seconds() }
    }

    fn seconds(&self) -> f64 {
        match (self.processor, processor_seconds()) {
            (Some(start), Some(end)) if end > start => end - start,
            _ => self.passed.elapsed().as_secs_f64(),
        }
    }
}

/// Linux: the first number of `schedstat` is in nanoseconds, brought up to date at every tick.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}
