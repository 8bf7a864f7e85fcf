//! Multinomial logistic regression of 20 classes, on rows like the news stories of news20.

use super::emitted::Emitted;
use super::hand::{Lines, VECTORS_AHEAD, is_far, on_this_processor, prefetch, prefetch_at};
use super::sums::Sums;
use crate::data::{Arrays, Data};
use crate::workload::{Error, Named, Workload};
use nnz::data::ColumnValues;
use nnz::formats::Ids;
use nnz::optimizer::UpdateRule;
use nnz::prelude::*;

graph! {
    /// Scores of 20 classes.
    pub model Softmax {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, 20] = Zeros;
        param b: dense[20] = Zeros;
        let scores = dot(x, w) + b;
        loss softmax_cross_entropy(scores, y);
        output scores;
    }
}

const CLASSES: usize = 20;
/// The numbers of a row by hand: five registers of sixteen bytes, or one of 64 and one of 16.
const ROW: usize = 20;
/// The numbers of a line of the cache.
const LINE: usize = 16;
const RATE: f32 = 0.05;

pub fn sgd() -> Sgd {
    Sgd { learning_rate: f64::from(RATE), ..Sgd::default() }
}

pub fn adagrad() -> AdaGrad {
    AdaGrad { learning_rate: f64::from(RATE), ..AdaGrad::default() }
}

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    vec![
        workload::<1, _>(data, 1, sgd()),
        workload::<2, _>(data, 1, adagrad()),
        workload::<1, _>(data, 1024, sgd()),
        workload::<2, _>(data, 1024, adagrad()),
    ]
}

fn workload<const PARTS: usize, R: UpdateRule>(data: &Data, batch: usize, rule: R) -> Named<'_> {
    Named::new(format!("softmax 20 classes {} batch {batch}", R::NAME), move || {
        let news = data.news()?;
        let x = Arrays::of(news.features().ok_or("the news have features")?)?;
        let Some(ColumnValues::Ids(Ids::U32(classes))) = news.labels() else {
            return Err("the labels are classes".into());
        };
        let classes = classes.values();
        let model = Softmax::new(dims! { d: x.n_cols }, Seed(0))?;
        Ok(Workload::per_second("M samples/s", x.n_rows() as f64 / 1e6)
            .tolerance(2e-3)
            .contestant(
                "nnz",
                Emitted::new(model, rule, batch)?,
                move |emitted| emitted.run(news),
                move |emitted| {
                    let (w, b) = (emitted.model.w.values(), emitted.model.b.values());
                    loss(x, classes, b, |column| &w[column * CLASSES..])
                },
            )
            .contestant(
                "by hand",
                ByHand::<PARTS>::new(x.n_cols, batch)?,
                move |by_hand| {
                    by_hand.total = on_this_processor(
                        #[inline(always)]
                        || match by_hand.batch {
                            1 => by_hand.online(x, classes),
                            _ => by_hand.batches(x, classes),
                        },
                    );
                },
                move |by_hand| {
                    let w = by_hand.w.get();
                    loss(x, classes, &by_hand.b[0], |column| &w[column * PARTS * ROW..])
                },
            ))
    })
}

/// The weights of a row of the table, with two parts AdaGrad's sums behind them.
type Row<const PARTS: usize> = [[f32; ROW]; PARTS];

struct ByHand<const PARTS: usize> {
    w: Lines,
    b: Row<PARTS>,
    batch: usize,
    /// The losses of the last epoch.
    total: f64,
    sums: Sums<ROW>,
}

impl<const PARTS: usize> ByHand<PARTS> {
    fn new(width: usize, batch: usize) -> Result<Self, Error> {
        Ok(ByHand {
            w: Lines::zeros(width * PARTS * ROW)?,
            b: [[0.0; ROW]; PARTS],
            batch,
            total: 0.0,
            sums: Sums::new(width)?,
        })
    }

    #[inline(always)]
    fn prefetch(w: &[f32], columns: &[u32]) {
        for &column in columns {
            for at in (0..PARTS * ROW).step_by(LINE) {
                prefetch(w, column as usize * PARTS * ROW + at);
            }
        }
    }

    #[inline(always)]
    fn online(&mut self, x: Arrays<'_>, classes: &[u32]) -> f64 {
        let mut total = 0.0;
        let w = self.w.get_mut();
        let is_far = is_far(w);
        for (row, &class) in classes.iter().enumerate() {
            x.ask(row);
            if is_far && row + VECTORS_AHEAD < x.n_rows() {
                Self::prefetch(w, x.row(row + VECTORS_AHEAD).0);
            }
            let (columns, values) = x.row(row);
            let mut slopes = scores::<PARTS>(columns, values, w, &self.b[0]);
            total += f64::from(gradient(&mut slopes, class));
            for (&column, value) in columns.iter().zip(values) {
                // SAFETY: `Csr` holds columns below its width, for which the table was made.
                let row = unsafe { of_column::<PARTS>(w, column) };
                update(row, &slopes.map(|slope| value * slope));
            }
            update(&mut self.b, &slopes);
        }
        total
    }

    /// The gradient of each column is summed before its one update, while the row of data is at
    /// hand.
    #[inline(always)]
    fn batches(&mut self, x: Arrays<'_>, classes: &[u32]) -> f64 {
        let mut total = 0.0;
        let (w, sums) = (self.w.get_mut(), &mut self.sums);
        let is_far = is_far(w);
        for first in (0..x.n_rows()).step_by(self.batch) {
            let rows = first..x.n_rows().min(first + self.batch);
            let share = 1.0 / rows.len() as f32;
            let mut of_bias = [0.0f64; ROW];
            for row in rows {
                x.ask(row);
                if row + VECTORS_AHEAD < x.n_rows() {
                    let (columns, _) = x.row(row + VECTORS_AHEAD);
                    if is_far {
                        Self::prefetch(w, columns);
                    }
                    sums.ask(columns);
                }
                let (columns, values) = x.row(row);
                let mut slopes = scores::<PARTS>(columns, values, w, &self.b[0]);
                total += f64::from(gradient(&mut slopes, classes[row]));
                for (slope, sum) in slopes.iter_mut().zip(&mut of_bias) {
                    *slope *= share;
                    *sum += f64::from(*slope);
                }
                for (&column, value) in columns.iter().zip(values) {
                    sums.add(
                        column,
                        #[inline(always)]
                        |sum| (0..ROW).for_each(|f| sum[f] += f64::from(value * slopes[f])),
                    );
                }
            }
            update(&mut self.b, &of_bias.map(|sum| sum as f32));
            let table = w.as_ptr();
            sums.take(
                #[inline(always)]
                |ahead| {
                    if is_far {
                        (0..PARTS * ROW).step_by(LINE).for_each(|at| {
                            prefetch_at(table.wrapping_add(ahead as usize * PARTS * ROW + at));
                        });
                    }
                },
                // SAFETY: as in `online`.
                #[inline(always)]
                |column, sum| update(unsafe { of_column::<PARTS>(w, column) }, sum),
            );
        }
        total
    }
}

/// The row of a column.
///
/// # Safety
///
/// `column` is below the width for which the table was made.
#[inline(always)]
unsafe fn of_column<const PARTS: usize>(w: &mut [f32], column: u32) -> &mut Row<PARTS> {
    // SAFETY: as the caller says.
    unsafe { &mut *w.as_mut_ptr().add(column as usize * PARTS * ROW).cast() }
}

#[inline(always)]
fn update<const PARTS: usize>(row: &mut Row<PARTS>, grads: &[f32; ROW]) {
    let mut new = *row;
    if PARTS == 1 {
        for f in 0..ROW {
            new[0][f] -= RATE * grads[f];
        }
    } else {
        for f in 0..ROW {
            new[1][f] += grads[f] * grads[f];
        }
        for f in 0..ROW {
            new[0][f] -= RATE * grads[f] / (new[1][f] + 1e-7).sqrt();
        }
    }
    *row = new;
}

/// The scores of a row of data, which lie in registers meanwhile.
#[inline(always)]
fn scores<const PARTS: usize>(
    columns: &[u32],
    values: &[f32],
    w: &[f32],
    b: &[f32; ROW],
) -> [f32; ROW] {
    let mut scores = *b;
    for (&column, value) in columns.iter().zip(values) {
        // SAFETY: `Csr` holds columns below its width, for which the table was made.
        let row: &[f32; ROW] = unsafe { &*w.as_ptr().add(column as usize * PARTS * ROW).cast() };
        for f in 0..ROW {
            scores[f] += value * row[f];
        }
    }
    scores
}

/// Makes the gradient of scores; gives the loss.
#[inline(always)]
fn gradient(scores: &mut [f32; ROW], class: u32) -> f32 {
    let largest = scores[..CLASSES].iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let labelled = scores[class as usize] - largest;
    let mut total = 0.0;
    for score in &mut scores[..CLASSES] {
        *score = (*score - largest).exp();
        total += *score;
    }
    let inverse = 1.0 / total;
    scores.iter_mut().for_each(|score| *score *= inverse);
    scores[class as usize] -= 1.0;
    total.ln() - labelled
}

/// The mean loss, in `f64`.
fn loss<'w>(
    x: Arrays<'_>,
    classes: &[u32],
    b: &[f32],
    weights: impl Fn(usize) -> &'w [f32],
) -> f64 {
    let losses = classes.iter().enumerate().map(|(row, &class)| {
        let (columns, values) = x.row(row);
        let mut scores = [0.0f64; CLASSES];
        for (f, score) in scores.iter_mut().enumerate() {
            let terms = columns.iter().zip(values);
            let product = terms.map(|(&column, &value)| value * weights(column as usize)[f]);
            *score = f64::from(b[f] + product.sum::<f32>());
        }
        scores.iter().map(|score| score.exp()).sum::<f64>().ln() - scores[class as usize]
    });
    losses.sum::<f64>() / classes.len() as f64
}
