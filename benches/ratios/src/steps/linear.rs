//! Logistic regression on a log of clicks, 39 of 2²⁰ or 2²⁴ features a row.

use super::emitted::Emitted;
use super::hand::{
    self, AHEAD, Batches, Lines, Log, Losses, Rule, Value, WITH_SLOT, is_far, prefetch,
    prefetch_at, product, stride_of,
};
use super::sums::Sums;
use crate::data::{Data, Random};
use crate::workload::{Named, Workload};
use nnz::data::FrequencyOrder;
use nnz::optimizer::UpdateRule;
use nnz::prelude::*;

graph! {
    /// Without bias, as the loops by hand compute it.
    pub model Logistic {
        specialize = [Sgd, AdaGrad, Ftrl, Adam];
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output score;
    }
}

pub const RATE: f32 = 0.05;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    let mut all = Vec::new();
    for bits in [20, 24] {
        for batch in [1, 1024, 8192] {
            let lazy_update = LazyUpdate::Touched;
            let rate = f64::from(RATE);
            let sgd = Sgd { learning_rate: rate, ..Sgd::default() };
            all.push(workload(data, bits, batch, sgd, hand::Sgd(RATE)));
            let adagrad = AdaGrad { learning_rate: rate, ..AdaGrad::default() };
            all.push(workload(data, bits, batch, adagrad, hand::AdaGrad(RATE)));
            let ftrl = Ftrl { learning_rate: rate, l1: 1e-4, lazy_update, ..Ftrl::default() };
            let by_hand = hand::Ftrl { inverse_rate: 1.0 / RATE, beta: 1.0, l1: 1e-4 };
            all.push(workload(data, bits, batch, ftrl, by_hand));
            let adam = Adam { learning_rate: 1e-3, lazy_update, ..Adam::default() };
            all.push(workload(data, bits, batch, adam, hand::Adam::new(1e-3)));
        }
    }
    for bits in [20, 24] {
        all.push(waiting(data, bits));
        all.push(by_frequency(data, bits));
        let rate = f64::from(RATE);
        let sgd = Sgd { learning_rate: rate, ..Sgd::default() };
        all.push(shuffled(data, bits, sgd, hand::Sgd(RATE)));
        let adagrad = AdaGrad { learning_rate: rate, ..AdaGrad::default() };
        all.push(shuffled(data, bits, adagrad, hand::AdaGrad(RATE)));
    }
    all
}

/// Rows that wait for the steps of Adam that they miss, and are caught up with when they are read,
/// against rows that are left out.
fn waiting(data: &Data, bits: u32) -> Named<'_> {
    Named::new(format!("logistic 2^{bits} adam batch 1, exact"), move || {
        let log = data.log(bits)?;
        let arrays = Log::of(log).ok_or("the log is csr with u32 columns")?;
        let exact = Adam { learning_rate: 1e-3, ..Adam::default() };
        let touched = Adam { lazy_update: LazyUpdate::Touched, ..exact.clone() };
        let model = || Logistic::new(dims! { d: arrays.width }, Seed(0));
        let (waits, leaves_out) = (model()?, model()?);
        // These are two ways of training: the second leaves most of Adam's momentum out.
        Ok(Workload::per_second("M samples/s", arrays.n_rows() as f64 / 1e6)
            .tolerance(0.5)
            .contestant(
                "exact",
                Emitted::new(waits, exact, 1)?,
                move |emitted| emitted.run(log),
                move |emitted| loss(arrays, (emitted.model.w.values(), 1)),
            )
            .contestant(
                "touched",
                Emitted::new(leaves_out, touched, 1)?,
                move |emitted| emitted.run(log),
                move |emitted| loss(arrays, (emitted.model.w.values(), 1)),
            ))
    })
}

/// The same rows with their features by frequency, against features as they come.
fn by_frequency(data: &Data, bits: u32) -> Named<'_> {
    Named::new(format!("logistic 2^{bits} sgd batch 1, features by frequency"), move || {
        let log = data.log(bits)?;
        let order = FrequencyOrder::of(log)?;
        let ordered = order.reorder(log.clone())?;
        let arrays = Log::of(log).ok_or("the log is csr with u32 columns")?;
        let rule = Sgd { learning_rate: f64::from(RATE), ..Sgd::default() };
        let model = || Logistic::new(dims! { d: arrays.width }, Seed(0));
        let (model, unordered) = (model()?, model()?);
        Ok(Workload::per_second("M samples/s", arrays.n_rows() as f64 / 1e6)
            .tolerance(1e-3)
            .contestant(
                "by frequency",
                Emitted::new(model, rule.clone(), 1)?,
                move |emitted| emitted.run(&ordered),
                move |emitted| {
                    let mut table = emitted.model.w.table().clone();
                    match order.restore(&mut table) {
                        Ok(()) => loss(arrays, (table.values(), 1)),
                        Err(_) => f64::NAN,
                    }
                },
            )
            .contestant(
                "as they come",
                Emitted::new(unordered, rule, 1)?,
                move |emitted| emitted.run(log),
                move |emitted| loss(arrays, (emitted.model.w.values(), 1)),
            ))
    })
}

fn workload<'a, const BLOCK: usize, R: UpdateRule, H: Rule<BLOCK> + 'a>(
    data: &'a Data,
    bits: u32,
    batch: usize,
    rule: R,
    by_hand: H,
) -> Named<'a> {
    let name = format!("logistic 2^{bits} {} batch {batch}", R::NAME);
    Named::new(name, move || {
        let log = data.log(bits)?;
        let arrays = Log::of(log).ok_or("the log is csr with u32 columns")?;
        let model = Logistic::new(dims! { d: arrays.width }, Seed(0))?;
        let is_sgd = R::NAME == "sgd";
        let stride = stride_of::<BLOCK>(batch);
        let table = Lines::zeros(arrays.width * stride)?;
        let batches = Batches::new(batch);
        let workload = Workload::per_second("M samples/s", arrays.n_rows() as f64 / 1e6)
            .tolerance(1e-3)
            .contestant(
                "nnz",
                Emitted::new(model, rule, batch)?,
                move |emitted| emitted.run(log),
                move |emitted| loss(arrays, (emitted.model.w.values(), 1)),
            )
            .contestant(
                "by hand",
                (table, batches, by_hand, 0.0),
                move |(table, batches, rule, total)| {
                    *total = match (batch, is_sgd) {
                        (1, _) => hand::online::<BLOCK, H, f32>(arrays, table.get_mut(), rule),
                        (_, true) => batches.sgd(arrays, table.get_mut(), RATE),
                        _ => batches.any::<BLOCK, WITH_SLOT, H, f32>(arrays, table.get_mut(), rule),
                    };
                },
                move |(table, ..)| loss(arrays, (table.get(), stride)),
            );
        if batch == 1 || !is_sgd {
            return Ok(workload);
        }
        let apart = (Lines::zeros(arrays.width)?, Sums::new(arrays.width)?, 0.0);
        Ok(workload.contestant(
            "by hand, slots apart",
            apart,
            move |(weights, sums, total)| {
                *total = batches_apart(arrays, weights.get_mut(), sums, batch);
            },
            move |(weights, ..)| loss(arrays, (weights.get(), 1)),
        ))
    })
}

/// An epoch of batches by SGD as one writes it first: gradients of a batch are summed by a map of
/// its own, and then applied.
#[inline(never)]
fn batches_apart(x: Log<'_>, weights: &mut [f32], sums: &mut Sums<1>, size: usize) -> f64 {
    let (mut losses, is_far) = (Losses::new(), is_far(weights));
    for first in (0..x.n_rows()).step_by(size) {
        let rows = first..x.n_rows().min(first + size);
        let share = 1.0 / rows.len() as f32;
        for row in rows {
            x.ask(row);
            if row + AHEAD < x.n_rows() {
                let (columns, _) = x.row(row + AHEAD);
                if is_far {
                    columns.iter().for_each(|column| prefetch(weights, *column as usize));
                }
                sums.ask(columns);
            }
            let (columns, values) = x.row(row);
            let score = product::<1, f32>(columns, values, weights);
            let grad = share * losses.gradient(score, x.labels[row]);
            for (column, value) in columns.iter().zip(values) {
                sums.add(*column, |sum| sum[0] += f64::from(value * grad));
            }
        }
        let start = weights.as_ptr();
        sums.take(
            |ahead| {
                if is_far {
                    prefetch_at(start.wrapping_add(ahead as usize));
                }
            },
            |column, sum| weights[column as usize] -= RATE * sum[0],
        );
    }
    losses.total()
}

/// Batches of one row, the rows in another order in each epoch: drawing it is part of the time. The
/// orders of the two sides differ, and so do their losses a little.
fn shuffled<'a, const BLOCK: usize, R: UpdateRule, H: Rule<BLOCK> + 'a>(
    data: &'a Data,
    bits: u32,
    rule: R,
    by_hand: H,
) -> Named<'a> {
    Named::new(format!("rows shuffled, 2^{bits} {} batch 1", R::NAME), move || {
        let log = data.log(bits)?;
        let arrays = Log::of(log).ok_or("the log is csr with u32 columns")?;
        let model = Logistic::new(dims! { d: arrays.width }, Seed(0))?;
        let table = Lines::zeros(arrays.width * BLOCK)?;
        let order: Vec<u32> = (0..arrays.n_rows() as u32).collect();
        Ok(Workload::per_second("M samples/s", arrays.n_rows() as f64 / 1e6)
            .tolerance(0.1)
            .contestant(
                "nnz",
                Emitted::new(model, rule, 1)?.shuffled(),
                move |emitted| emitted.run(log),
                move |emitted| loss(arrays, (emitted.model.w.values(), 1)),
            )
            .contestant(
                "by hand",
                (table, by_hand, order, Random(5), 0.0),
                move |(table, rule, order, random, total)| {
                    random.shuffle(order);
                    *total = hand::in_order::<BLOCK, H, f32>(arrays, table.get_mut(), rule, order);
                },
                move |(table, ..)| loss(arrays, (table.get(), BLOCK)),
            ))
    })
}

/// The mean logistic loss, in `f64`, of a table whose weights are `stride` numbers apart.
pub fn loss<V: Value>(x: Log<'_, V>, (table, stride): (&[f32], usize)) -> f64 {
    let losses = x.labels.iter().enumerate().map(|(row, &label)| {
        let (columns, values) = x.row(row);
        let entries = columns.iter().zip(values);
        let products = entries.map(|(id, value)| value.times(table[*id as usize * stride]));
        let score: f64 = products.map(f64::from).sum();
        score.max(0.0) + (-score.abs()).exp().ln_1p() - f64::from(label) * score
    });
    losses.sum::<f64>() / x.n_rows() as f64
}
