//! The emitted training step against the loop that one writes by hand, on the same arrays, interleaved in one
//! process: logistic regression on 200,000 × 2²⁰ rows of 39 non-zeros, SGD, batches of one row, one thread.
//!
//! ```text
//! cargo bench --bench linear_step
//! ```

use nnz::data::synthetic;
use nnz::data::{BatchOptions, DataSource, Order};
use nnz::optimizer::Updater;
use nnz::prelude::*;
use nnz::training::fit_epoch;
use std::hint::black_box;
use std::time::Instant;

const ROWS: usize = 200_000;
const FEATURES: usize = 1 << 20;
const FIELDS: usize = 39;
const LEARNING_RATE: f32 = 0.02;
const ROUNDS: usize = 9;

graph! {
    /// Logistic regression without bias, as the loop below computes it.
    pub model Logistic {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output score;
    }
}

/// The arrays that both loops read.
struct Arrays<'a> {
    indptr: &'a [u64],
    columns: &'a [u32],
    values: &'a [f32],
    labels: &'a [f32],
}

fn main() -> Result<()> {
    let data = synthetic::click_log(ROWS, FEATURES, FIELDS, 42)?;
    let (Some(x), Some(nnz::data::ColumnValues::Dense(y))) = (data.features(), data.labels())
    else {
        return Ok(());
    };
    let nnz::formats::ColumnIdsView::U32(columns) = x.columns() else { return Ok(()) };
    let arrays = Arrays { indptr: x.indptr(), columns, values: x.values(), labels: y.values() };
    println!("{ROWS} × {FEATURES} rows of {FIELDS} non-zeros, logistic, SGD, one thread, f32");
    println!(
        "{:<26}{:>14}{:>14}{:>9}{:>13}",
        "batch", "by hand, M/s", "emitted, M/s", "ratio", "loss differs"
    );
    for batch_size in [1, 32, 1024] {
        compare(&data, &arrays, batch_size)?;
    }
    Ok(())
}

fn compare(data: &Dataset, arrays: &Arrays<'_>, batch_size: usize) -> Result<()> {
    let rule = Sgd { learning_rate: f64::from(LEARNING_RATE), ..Sgd::default() };
    let mut model = Logistic::new(dims! { d: FEATURES }, Seed(0))?;
    let mut updater = Updater::for_model(rule, &model)?;
    updater.set_records_outputs(false);
    let options = BatchOptions { batch_size, order: Order::Sequential, ..BatchOptions::default() };
    let mut batches = data.batches(Logistic::INPUTS, &options)?;
    let mut weights = vec![0.0f32; FEATURES];
    let mut hand = Hand::new(FEATURES);
    let (mut by_hand, mut emitted, mut difference) = (Vec::new(), Vec::new(), 0.0f64);
    for round in 0..ROUNDS {
        let start = Instant::now();
        let loss = match batch_size {
            1 => one_row_at_a_time(arrays, &mut weights),
            _ => hand.batches(arrays, &mut weights, batch_size),
        };
        by_hand.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let totals = fit_epoch(&mut model, &mut updater, &mut batches, round as u64, &mut ())?;
        emitted.push(start.elapsed().as_secs_f64());
        // The same work: the progressive losses agree up to the order of additions.
        difference = difference.max((black_box(loss) - totals.mean_loss()).abs());
    }
    let rate = |seconds: &mut Vec<f64>| {
        seconds.sort_by(f64::total_cmp);
        ROWS as f64 / seconds[seconds.len() / 2] / 1e6
    };
    let (by_hand, emitted) = (rate(&mut by_hand), rate(&mut emitted));
    println!(
        "{batch_size:<26}{by_hand:>14.2}{emitted:>14.2}{:>9.2}{difference:>13.1e}",
        emitted / by_hand
    );
    Ok(())
}

/// log(1 + exp(s)) - t·s and its derivative, without overflow.
#[inline(always)]
fn logistic(score: f32, label: f32) -> (f32, f32) {
    let target = if label > 0.0 { label } else { 0.0 };
    let e = (-score.abs()).exp();
    let sigmoid = if score >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) };
    let softplus = if score >= 0.0 { score } else { 0.0 } + e.ln_1p();
    (softplus - target * score, sigmoid - target)
}

/// Gather, dot, sigmoid, scatter: the plain loop, without bounds checks inside a row. Returns the mean loss.
fn one_row_at_a_time(arrays: &Arrays<'_>, weights: &mut [f32]) -> f64 {
    assert!(arrays.columns.iter().all(|column| (*column as usize) < weights.len()));
    let mut total = 0.0f64;
    for (row, bounds) in arrays.indptr.windows(2).enumerate() {
        let range = bounds[0] as usize..bounds[1] as usize;
        let (columns, values) = (&arrays.columns[range.clone()], &arrays.values[range]);
        let mut score = 0.0f32;
        for (column, value) in columns.iter().zip(values) {
            // SAFETY: all columns were compared with the table above.
            score += value * unsafe { *weights.get_unchecked(*column as usize) };
        }
        let (loss, gradient) = logistic(score, arrays.labels[row]);
        total += f64::from(loss);
        let step = LEARNING_RATE * gradient;
        for (column, value) in columns.iter().zip(values) {
            // SAFETY: as above.
            unsafe { *weights.get_unchecked_mut(*column as usize) -= step * value };
        }
    }
    total / arrays.labels.len() as f64
}

/// The plain loop over batches: scores, then the gradient of each touched weight in a stamped table, then one
/// update for each.
struct Hand {
    slot_of: Vec<u32>,
    touched: Vec<u32>,
    sums: Vec<f32>,
    gradients: Vec<f32>,
}

impl Hand {
    fn new(n_features: usize) -> Self {
        Hand {
            slot_of: vec![0; n_features],
            touched: Vec::new(),
            sums: Vec::new(),
            gradients: Vec::new(),
        }
    }

    fn batches(&mut self, arrays: &Arrays<'_>, weights: &mut [f32], batch_size: usize) -> f64 {
        assert!(arrays.columns.iter().all(|column| (*column as usize) < weights.len()));
        assert_eq!(self.slot_of.len(), weights.len());
        let mut total = 0.0f64;
        let n_rows = arrays.labels.len();
        for first in (0..n_rows).step_by(batch_size) {
            let rows = first..(first + batch_size).min(n_rows);
            let mean = 1.0 / rows.len() as f32;
            self.gradients.clear();
            for row in rows.clone() {
                let range = arrays.indptr[row] as usize..arrays.indptr[row + 1] as usize;
                let mut score = 0.0f32;
                for (column, value) in
                    arrays.columns[range.clone()].iter().zip(&arrays.values[range])
                {
                    // SAFETY: all columns were compared with the table above.
                    score += value * unsafe { *weights.get_unchecked(*column as usize) };
                }
                let (loss, gradient) = logistic(score, arrays.labels[row]);
                total += f64::from(loss);
                self.gradients.push(gradient * mean);
            }
            for (row, gradient) in rows.zip(&self.gradients) {
                let range = arrays.indptr[row] as usize..arrays.indptr[row + 1] as usize;
                for (column, value) in
                    arrays.columns[range.clone()].iter().zip(&arrays.values[range])
                {
                    // SAFETY: as above; slots are positions in `sums`.
                    unsafe {
                        let slot = self.slot_of.get_unchecked_mut(*column as usize);
                        if *slot == 0 {
                            self.touched.push(*column);
                            self.sums.push(0.0);
                            *slot = self.sums.len() as u32;
                        }
                        *self.sums.get_unchecked_mut(*slot as usize - 1) += value * gradient;
                    }
                }
            }
            for (column, sum) in self.touched.drain(..).zip(self.sums.drain(..)) {
                self.slot_of[column as usize] = 0;
                weights[column as usize] -= LEARNING_RATE * sum;
            }
        }
        total / n_rows as f64
    }
}
