//! Steps through a csr that is computed from parameters, and through functions of tables, for wider
//! and wider data, beside loops by hand over tables as wide: what a sample costs beyond theirs must
//! not grow with the columns.

use super::emitted::Emitted;
use super::hand::{Log, Losses, on_this_processor, prefetch};
use crate::data::{Data, Random};
use crate::workload::{Error, Named, Workload};
use nnz::formats::Csr;
use nnz::prelude::*;

const WIDTHS: [usize; 3] = [2_000, 200_000, 20_000_000];
const SAMPLES: usize = 200;
const ENTRIES: usize = 8;
const RATE: f32 = 0.01;
/// Samples between asking for the rows of one and reading them, of the loops by hand.
const AHEAD: usize = 4;

graph! {
    /// Products of two tables at the entries of the batch.
    pub model Sampled {
        input x: csr[n, d];
        label y: dense[n, 1];
        param u: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.1 };
        param v: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.1 };
        param r: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.1 };
        let z = sampled_dot(dot(x, u), v, x, transpose_rhs = true);
        loss logistic(dot(tanh(z + x), r), y);
    }

    /// Functions of tables that are read by rows.
    pub model Functions {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.1 };
        param v: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.1 };
        loss logistic(dot(x, relu(w)) + dot(square(x), square(v)), y);
    }
}

pub fn workloads(_: &Data) -> Vec<Named<'_>> {
    let each = WIDTHS.into_iter().flat_map(|width| {
        [
            Named::new(format!("computed csr, {width} columns"), move || {
                let model = Sampled::new(dims! { d: width }, Seed(0))?;
                let by_hand = Tables::of([model.u.values(), model.v.values(), model.r.values()]);
                let weight = |model: &Sampled, row| model.u.row(row)[0].abs() + model.r.row(row)[0];
                workload(width, model, weight, by_hand, Tables::sampled, |tables, row| {
                    tables.u[4 * row].abs() + tables.r[row]
                })
            }),
            Named::new(format!("functions of a table, {width} rows"), move || {
                let model = Functions::new(dims! { d: width }, Seed(0))?;
                let by_hand = Tables::of([model.w.values(), model.v.values(), &[]]);
                let weight = |model: &Functions, row| model.w.row(row)[0].abs() + model.v.row(row)[0];
                workload(width, model, weight, by_hand, Tables::functions, |tables, row| {
                    tables.u[row].abs() + tables.v[row]
                })
            }),
        ]
    });
    each.collect()
}

/// A model and a loop by hand at the same width. They agree on some weights of the rows in use.
fn workload<'a, M: Model<Element = f32> + 'a>(
    width: usize,
    model: M,
    weight: impl Fn(&M, usize) -> f32 + Copy + 'a,
    tables: Tables,
    epoch: impl Fn(&mut Tables, Log) + Copy + 'a,
    weight_by_hand: impl Fn(&Tables, usize) -> f32 + Copy + 'a,
) -> Result<Workload<'a>, Error> {
    let rule = Sgd { learning_rate: f64::from(RATE), ..Sgd::default() };
    let data = std::rc::Rc::new(samples(width)?);
    Log::of(&data).ok_or("the samples are csr with u32 columns")?;
    let (also, of_ours, of_theirs) = (data.clone(), data.clone(), data.clone());
    let sum = |data: &Dataset, weight: &dyn Fn(usize) -> f32| -> f64 {
        let columns = Log::of(data).map_or(&[][..], |log| log.columns);
        columns.iter().map(|column| f64::from(weight(*column as usize))).sum()
    };
    Ok(Workload::per_second("k samples/s", SAMPLES as f64 / 1e3)
        .warm_up(3)
        .contestant(
            "nnz",
            Emitted::new(model, rule, SAMPLES)?,
            move |emitted| emitted.run(&data),
            move |emitted| sum(&of_ours, &|row| weight(&emitted.model, row)),
        )
        .contestant(
            "by hand",
            tables,
            move |tables| {
                if let Some(log) = Log::of(&also) {
                    on_this_processor(
                        #[inline(always)]
                        || epoch(tables, log),
                    );
                }
            },
            move |tables| sum(&of_theirs, &|row| weight_by_hand(tables, row)),
        ))
}

/// What the loops by hand work on: tables as wide as those of the model, and the sums of a batch
/// for the rows that it names.
struct Tables {
    u: Vec<f32>,
    v: Vec<f32>,
    r: Vec<f32>,
    /// Of a column, `first` and the number of its sum, where the batch has named it; else less.
    slots: Vec<u32>,
    first: u32,
    rows: Vec<u32>,
    sums: Vec<[f32; 9]>,
}

impl Tables {
    /// Of three tables, of which the last has a number for each column or nothing.
    fn of([u, v, r]: [&[f32]; 3]) -> Tables {
        let slots = vec![0; if r.is_empty() { u.len() } else { r.len() }];
        let (u, v, r) = (u.to_vec(), v.to_vec(), r.to_vec());
        Tables { u, v, r, slots, first: 1, rows: Vec::new(), sums: Vec::new() }
    }

    #[inline(always)]
    fn slot(&mut self, column: usize) -> usize {
        let slot = &mut self.slots[column];
        if *slot < self.first {
            *slot = self.first + self.rows.len() as u32;
            self.rows.push(column as u32);
            self.sums.push([0.0; 9]);
        }
        (*slot - self.first) as usize
    }

    #[inline(always)]
    fn ask(&self, log: Log, sample: usize, row_size: usize) {
        if sample < log.n_rows() {
            for column in log.row(sample).0 {
                let column = *column as usize;
                prefetch(&self.u, row_size * column);
                prefetch(&self.v, row_size * column);
                prefetch(&self.r, column);
                prefetch(&self.slots, column);
            }
        }
    }

    #[inline(always)]
    fn clear(&mut self) {
        self.first += self.rows.len() as u32;
        self.rows.clear();
        self.sums.clear();
    }

    /// A step of [`Sampled`] on all samples.
    #[inline(always)]
    fn sampled(&mut self, log: Log) {
        let mut losses = Losses::new();
        let share = 1.0 / log.n_rows() as f32;
        let of = |table: &[f32], column: u32| -> [f32; 4] {
            let start = 4 * column as usize;
            std::array::from_fn(|factor| table[start + factor])
        };
        (0..AHEAD).for_each(|sample| self.ask(log, sample, 4));
        for sample in 0..log.n_rows() {
            self.ask(log, sample + AHEAD, 4);
            let (columns, values) = log.row(sample);
            let mut bag = [0.0; 4];
            for (&column, &value) in columns.iter().zip(values) {
                let u = of(&self.u, column);
                (0..4).for_each(|factor| bag[factor] += value * u[factor]);
            }
            let (mut score, mut bent) = (0.0, [0.0; ENTRIES]);
            for ((&column, &value), bent) in columns.iter().zip(values).zip(&mut bent) {
                let v = of(&self.v, column);
                let product: f32 = (0..4).map(|factor| bag[factor] * v[factor]).sum();
                *bent = (product + value).tanh();
                score += *bent * self.r[column as usize];
            }
            let grad = share * losses.gradient(score, log.labels[sample]);
            let (mut to_bag, mut slots) = ([0.0; 4], [0; ENTRIES]);
            for ((&column, bent), slot) in columns.iter().zip(bent).zip(&mut slots) {
                *slot = self.slot(column as usize);
                let (v, sums) = (of(&self.v, column), &mut self.sums[*slot]);
                let inner = grad * self.r[column as usize] * (1.0 - bent * bent);
                for factor in 0..4 {
                    to_bag[factor] += inner * v[factor];
                    sums[4 + factor] += inner * bag[factor];
                }
                sums[8] += grad * bent;
            }
            for (slot, &value) in slots.iter().zip(values) {
                let sums = &mut self.sums[*slot];
                (0..4).for_each(|factor| sums[factor] += value * to_bag[factor]);
            }
        }
        for (&row, sums) in self.rows.iter().zip(&self.sums) {
            let row = row as usize;
            for factor in 0..4 {
                self.u[4 * row + factor] -= RATE * sums[factor];
                self.v[4 * row + factor] -= RATE * sums[4 + factor];
            }
            self.r[row] -= RATE * sums[8];
        }
        self.clear();
    }

    /// A step of [`Functions`] on all samples.
    #[inline(always)]
    fn functions(&mut self, log: Log) {
        let mut losses = Losses::new();
        let share = 1.0 / log.n_rows() as f32;
        (0..AHEAD).for_each(|sample| self.ask(log, sample, 1));
        for sample in 0..log.n_rows() {
            self.ask(log, sample + AHEAD, 1);
            let (columns, values) = log.row(sample);
            let mut score = 0.0;
            for (&column, &value) in columns.iter().zip(values) {
                let (w, v) = (self.u[column as usize], self.v[column as usize]);
                score += value * w.max(0.0) + value * value * (v * v);
            }
            let grad = share * losses.gradient(score, log.labels[sample]);
            for (&column, &value) in columns.iter().zip(values) {
                let slot = self.slot(column as usize);
                let sums = &mut self.sums[slot];
                sums[0] += grad * value;
                sums[1] += grad * value * value;
            }
        }
        for (&row, sums) in self.rows.iter().zip(&self.sums) {
            let (w, v) = (&mut self.u[row as usize], &mut self.v[row as usize]);
            *w -= RATE * if *w > 0.0 { sums[0] } else { 0.0 };
            *v -= RATE * sums[1] * 2.0 * *v;
        }
        self.clear();
    }
}

/// Samples whose entries are anywhere among the columns.
fn samples(width: usize) -> Result<Dataset, Error> {
    let mut random = Random(7);
    let rows = (0..SAMPLES).map(|_| {
        let mut columns: Vec<usize> =
            (0..ENTRIES).map(|_| (random.uniform() * width as f64) as usize).collect();
        columns.sort_unstable();
        columns.dedup();
        columns.into_iter().map(|column| (column, 1.0)).collect::<Vec<_>>()
    });
    let x = Csr::from_rows(width, rows)?;
    let labels = (0..SAMPLES).map(|sample| (sample % 2) as f32).collect();
    Ok(Dataset::new(x, labels)?)
}
