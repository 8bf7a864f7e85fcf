//! A factorization machine with 16 factors on the log of clicks.

use super::emitted::Emitted;
use super::hand::{Lines, Log, Losses, VECTORS_AHEAD, is_far, on_this_processor, prefetch};
use crate::data::Data;
use crate::workload::{Error, Named, Workload};
use nnz::optimizer::UpdateRule;
use nnz::prelude::*;

graph! {
    /// Without bias, as the loops by hand compute it.
    pub model Machine {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 16] = Normal { mean: 0.0, std: 0.05 };
        let score = dot(x, w) + pairwise_interaction(x, v);
        loss logistic(score, y);
        output score;
    }
}

const SIZE: usize = 16;
const RATE: f32 = 0.02;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    let rate = f64::from(RATE);
    vec![
        workload::<1, _>(data, 1, Sgd { learning_rate: rate, ..Sgd::default() }),
        workload::<2, _>(data, 1, AdaGrad { learning_rate: rate, ..AdaGrad::default() }),
        workload::<1, _>(data, 1024, Sgd { learning_rate: rate, ..Sgd::default() }),
        workload::<2, _>(data, 1024, AdaGrad { learning_rate: rate, ..AdaGrad::default() }),
    ]
}

fn workload<const PARTS: usize, R: UpdateRule>(data: &Data, batch: usize, rule: R) -> Named<'_> {
    Named::new(format!("machine k = 16 {} batch {batch}", R::NAME), move || {
        let log = data.log(20)?;
        let arrays = Log::of(log).ok_or("the log is csr with u32 columns")?;
        let model = Machine::new(dims! { d: arrays.width }, Seed(0))?;
        let by_hand = ByHand::<PARTS>::new(arrays.width, model.v.values(), batch)?;
        Ok(Workload::per_second("M samples/s", arrays.n_rows() as f64 / 1e6)
            .tolerance(2e-3)
            .contestant(
                "nnz",
                Emitted::new(model, rule, batch)?,
                move |emitted| emitted.run(log),
                move |emitted| {
                    loss::<1>(arrays, (emitted.model.w.values(), 1), emitted.model.v.values())
                },
            )
            .contestant(
                "by hand",
                by_hand,
                move |by_hand| {
                    by_hand.total = on_this_processor(
                        #[inline(always)]
                        || by_hand.run(arrays),
                    );
                },
                move |by_hand| {
                    let w = (by_hand.w.get(), weights_of::<PARTS>(batch));
                    loss::<PARTS>(arrays, w, by_hand.v.get())
                },
            ))
    })
}

/// Weights, and factors by rows of cache lines; with two parts, AdaGrad's sums behind each. Where
/// rows come in batches, weights have slots behind that, as many numbers for each column as
/// `weights_of` says: a line that is read for the weight has the slot as well.
struct ByHand<const PARTS: usize> {
    w: Lines,
    v: Lines,
    batch: usize,
    /// The losses of the last epoch.
    total: f64,
    /// A slot is `first` + the place in `columns`; less than `first` of a column that the batch has
    /// not touched.
    first: u32,
    columns: Vec<u32>,
    /// For each column touched: Σ g x s by factor, Σ g x², Σ g x, in `f64` as those of the library.
    sums: Vec<[f64; SIZE + 2]>,
}

/// The numbers from weight to weight: a power of two.
#[inline(always)]
const fn weights_of<const PARTS: usize>(batch: usize) -> usize {
    if batch == 1 { PARTS } else { 2 * PARTS }
}

/// The product and the interaction of a row, and Σ x v by factor. Weights are
/// `from_weight_to_weight` numbers apart.
#[inline(always)]
fn scores<const PARTS: usize>(
    columns: &[u32],
    values: &[f32],
    (w, from_weight_to_weight): (&[f32], usize),
    v: &[f32],
) -> (f32, [f32; SIZE]) {
    let (mut sums, mut squares, mut score) = ([0.0f32; SIZE], [0.0f32; SIZE], 0.0);
    for (&column, value) in columns.iter().zip(values) {
        let column = column as usize;
        // SAFETY: `Csr` holds columns below its width, for which both tables were made.
        let row = unsafe {
            score += value * w.get_unchecked(column * from_weight_to_weight);
            factors_of::<PARTS>(v, column)
        };
        for f in 0..SIZE {
            let term = value * row[f];
            sums[f] += term;
            squares[f] += term * term;
        }
    }
    let interaction: f32 = (0..SIZE).map(|f| sums[f] * sums[f] - squares[f]).sum();
    (score + 0.5 * interaction, sums)
}

/// The factors of a column.
///
/// # Safety
///
/// `column` is below the width for which the table was made.
#[inline(always)]
unsafe fn factors_of<const PARTS: usize>(v: &[f32], column: usize) -> &[f32; SIZE] {
    // SAFETY: as the caller says.
    unsafe { &*v.as_ptr().add(column * PARTS * SIZE).cast() }
}

impl<const PARTS: usize> ByHand<PARTS> {
    fn new(width: usize, factors: &[f32], batch: usize) -> Result<Self, Error> {
        let mut v = Lines::zeros(width * PARTS * SIZE)?;
        for (to, from) in v.get_mut().chunks_exact_mut(PARTS * SIZE).zip(factors.chunks(SIZE)) {
            to[..SIZE].copy_from_slice(from);
        }
        let w = Lines::zeros(width * weights_of::<PARTS>(batch))?;
        Ok(ByHand { w, v, batch, total: 0.0, first: 1, columns: Vec::new(), sums: Vec::new() })
    }

    #[inline(always)]
    fn run(&mut self, x: Log<'_>) -> f64 {
        match self.batch {
            1 => self.online(x),
            _ => self.batches(x),
        }
    }

    #[inline(always)]
    fn prefetch(
        (w, from_weight_to_weight): (&[f32], usize),
        v: &[f32],
        [w_is_far, v_is_far]: [bool; 2],
        columns: &[u32],
    ) {
        for &column in columns {
            if w_is_far {
                prefetch(w, column as usize * from_weight_to_weight);
            }
            if v_is_far {
                for part in 0..PARTS {
                    prefetch(v, (column as usize * PARTS + part) * SIZE);
                }
            }
        }
    }

    /// One update of the weight and of the row of factors of a column.
    ///
    /// # Safety
    ///
    /// `column` is below the width for which both tables were made.
    #[inline(always)]
    unsafe fn update(
        (w, from_weight_to_weight): (&mut [f32], usize),
        v: &mut [f32],
        column: usize,
        grad: f32,
        by: &[f32; SIZE],
    ) {
        // SAFETY: a table has `PARTS` blocks for each column, that of weights as many numbers as
        // there are from one to the next.
        let (w, v) = unsafe {
            let v = v.as_mut_ptr().add(column * PARTS * SIZE).cast::<[[f32; SIZE]; PARTS]>();
            let w = w.as_mut_ptr().add(column * from_weight_to_weight);
            (&mut *w.cast::<[f32; PARTS]>(), &mut *v)
        };
        if PARTS == 1 {
            w[0] -= RATE * grad;
            for f in 0..SIZE {
                v[0][f] -= RATE * by[f];
            }
        } else {
            w[1] += grad * grad;
            w[0] -= RATE * grad / (w[1] + 1e-7).sqrt();
            for f in 0..SIZE {
                v[1][f] += by[f] * by[f];
                v[0][f] -= RATE * by[f] / (v[1][f] + 1e-7).sqrt();
            }
        }
    }

    #[inline(always)]
    fn online(&mut self, x: Log<'_>) -> f64 {
        let mut losses = Losses::new();
        let (w, v) = (self.w.get_mut(), self.v.get_mut());
        let far = [is_far(w), is_far(v)];
        for row in 0..x.n_rows() {
            x.ask(row);
            if far[1] && row + VECTORS_AHEAD < x.n_rows() {
                Self::prefetch((w, PARTS), v, far, x.row(row + VECTORS_AHEAD).0);
            }
            let (columns, values) = x.row(row);
            let (score, sums) = scores::<PARTS>(columns, values, (w, PARTS), v);
            let grad = losses.gradient(score, x.labels[row]);
            for (&column, value) in columns.iter().zip(values) {
                let (column, share) = (column as usize, grad * value);
                // SAFETY: as in `scores`.
                let factors = unsafe { *factors_of::<PARTS>(v, column) };
                let mut by = [0.0; SIZE];
                for f in 0..SIZE {
                    by[f] = share * (sums[f] - value * factors[f]);
                }
                // SAFETY: as in `scores`.
                unsafe { Self::update((w, PARTS), v, column, share, &by) };
            }
        }
        losses.total()
    }

    #[inline(always)]
    fn batches(&mut self, x: Log<'_>) -> f64 {
        let mut losses = Losses::new();
        let (w, v, each) = (self.w.get_mut(), self.v.get_mut(), 2 * PARTS);
        let far = [is_far(w), is_far(v)];
        for first in (0..x.n_rows()).step_by(self.batch) {
            let rows = first..x.n_rows().min(first + self.batch);
            let mean = 1.0 / rows.len() as f32;
            self.columns.clear();
            self.sums.clear();
            for row in rows {
                x.ask(row);
                if row + VECTORS_AHEAD < x.n_rows() {
                    let (columns, _) = x.row(row + VECTORS_AHEAD);
                    if far[1] {
                        Self::prefetch((w, each), v, far, columns);
                    }
                }
                let (columns, values) = x.row(row);
                let (score, sums) = scores::<PARTS>(columns, values, (w, each), v);
                let grad = mean * losses.gradient(score, x.labels[row]);
                for (&column, value) in columns.iter().zip(values) {
                    let share = grad * value;
                    // SAFETY: as in `scores`; behind `PARTS` numbers there is a slot.
                    let slot: &mut u32 =
                        unsafe { &mut *w.as_mut_ptr().add(column as usize * each + PARTS).cast() };
                    let mut place = slot.wrapping_sub(self.first) as usize;
                    if place >= self.columns.len() {
                        place = self.columns.len();
                        self.columns.push(column);
                        self.sums.push([0.0; SIZE + 2]);
                        *slot = self.first + place as u32;
                    }
                    // In registers: no other pointer leads there.
                    let mut to = self.sums[place];
                    for f in 0..SIZE {
                        to[f] += f64::from(share * sums[f]);
                    }
                    to[SIZE] += f64::from(share * value);
                    to[SIZE + 1] += f64::from(share);
                    self.sums[place] = to;
                }
            }
            self.first += self.columns.len() as u32;
            for (place, (&column, sums)) in self.columns.iter().zip(&self.sums).enumerate() {
                if let Some(ahead) = self.columns.get(place + 16) {
                    Self::prefetch((w, each), v, far, std::slice::from_ref(ahead));
                }
                let column = column as usize;
                // SAFETY: as in `scores`.
                let factors = unsafe { *factors_of::<PARTS>(v, column) };
                let mut by = [0.0; SIZE];
                for f in 0..SIZE {
                    by[f] = (sums[f] - sums[SIZE] * f64::from(factors[f])) as f32;
                }
                // SAFETY: as in `scores`.
                unsafe { Self::update((w, each), v, column, sums[SIZE + 1] as f32, &by) };
            }
        }
        losses.total()
    }
}

/// The mean logistic loss, in `f64`.
fn loss<const PARTS: usize>(x: Log<'_>, w: (&[f32], usize), v: &[f32]) -> f64 {
    let losses = x.labels.iter().enumerate().map(|(row, &label)| {
        let (columns, values) = x.row(row);
        let score = f64::from(scores::<PARTS>(columns, values, w, v).0);
        score.max(0.0) + (-score.abs()).exp().ln_1p() - f64::from(label) * score
    });
    losses.sum::<f64>() / x.n_rows() as f64
}
