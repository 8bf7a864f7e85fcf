//! Wide and deep on the log of clicks: a linear part, and bags of 16 numbers a feature through a
//! layer of 32 units.

use super::emitted::Emitted;
use super::hand::{
    Lines, Log, Losses, VECTORS_AHEAD, is_far, on_this_processor, prefetch, prefetch_at, product,
};
use super::sums::Sums;
use crate::data::Data;
use crate::workload::{Error, Named, Workload};
use nnz::prelude::*;

graph! {
    /// Two layers over bags, beside a linear model.
    pub model WideDeep {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, 16] = Normal { mean: 0.0, std: 0.05 };
        param h: dense[16, 32] = Normal { mean: 0.0, std: 0.2 };
        param b: dense[32] = Zeros;
        param g: dense[32, 1] = Normal { mean: 0.0, std: 0.2 };
        let hidden = relu(dot(embedding_bag(x, t), h) + b);
        let score = dot(x, w) + dot(hidden, g);
        loss logistic(score, y);
        output score;
    }
}

const SIZE: usize = 16;
const UNITS: usize = 32;
pub const RATE: f32 = 0.01;
/// Rows of data whose gradients of layers are summed in `f32`; those sums are added up in `f64`, as
/// the library's.
const RUN: usize = 64;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    [1, 1024].map(|batch| workload(data, batch)).into()
}

fn workload(data: &Data, batch: usize) -> Named<'_> {
    Named::new(format!("wide & deep 16-32 sgd batch {batch}"), move || {
        let log = data.log(20)?;
        let arrays = Log::of(log).ok_or("the log is csr with u32 columns")?;
        let model = WideDeep::new(dims! { d: arrays.width }, Seed(0))?;
        let by_hand = ByHand::new(&model, arrays.width, batch)?;
        let rule = Sgd { learning_rate: f64::from(RATE), ..Sgd::default() };
        Ok(Workload::per_second("M samples/s", arrays.n_rows() as f64 / 1e6)
            .tolerance(2e-3)
            .contestant(
                "nnz",
                Emitted::new(model, rule, batch)?,
                move |emitted| emitted.run(log),
                move |emitted| {
                    let copy = ByHand::new(&emitted.model, arrays.width, 1);
                    copy.map_or(f64::NAN, |copy| copy.loss(arrays))
                },
            )
            .contestant(
                "by hand",
                by_hand,
                move |by_hand| {
                    std::hint::black_box(on_this_processor(
                        #[inline(always)]
                        || by_hand.epoch(arrays),
                    ));
                },
                move |by_hand| by_hand.loss(arrays),
            ))
    })
}

struct ByHand {
    w: Lines,
    t: Lines,
    /// Which of the two are to be asked for ahead.
    far: [bool; 2],
    layers: Layers,
    batch: usize,
    /// Of a batch: for each column, the gradients of its row in bags, and behind them that of its
    /// weight.
    sums: Sums<{ SIZE + 1 }>,
}

/// What a row of data goes through.
struct Passed {
    bag: [f32; SIZE],
    hidden: [f32; UNITS],
    score: f32,
}

/// The layers, or sums of their gradients: rows of whole cache lines, so that no vector is in two
/// of them.
#[repr(C, align(64))]
struct Layers<T = f32> {
    h: [[T; UNITS]; SIZE],
    b: [T; UNITS],
    g: [T; UNITS],
}

impl<T: Copy + Default> Layers<T> {
    fn zeros() -> Self {
        Layers {
            h: [[T::default(); UNITS]; SIZE],
            b: [T::default(); UNITS],
            g: [T::default(); UNITS],
        }
    }

    /// Calls `change` with each number and the one of `other` in its place.
    #[inline(always)]
    fn zip<U>(&mut self, other: &Layers<U>, change: impl Fn(&mut T, &U)) {
        let both = self.h.as_flattened_mut().iter_mut().zip(other.h.as_flattened());
        let both = both.chain(self.b.iter_mut().zip(&other.b));
        both.chain(self.g.iter_mut().zip(&other.g)).for_each(|(one, other)| change(one, other));
    }
}

/// Bags and gradients of units of some rows, whose outer products are added to the sum of the first
/// layer together: the sum is then read and written once for all of them.
struct Waiting {
    bags: [[f32; SIZE]; Waiting::MOST],
    units: [[f32; UNITS]; Waiting::MOST],
    rows: usize,
}

impl Waiting {
    const MOST: usize = 8;

    fn none() -> Self {
        Waiting { bags: [[0.0; SIZE]; Self::MOST], units: [[0.0; UNITS]; Self::MOST], rows: 0 }
    }

    #[inline(always)]
    fn add(&mut self, bag: [f32; SIZE], units: [f32; UNITS], sums: &mut Layers) {
        (self.bags[self.rows], self.units[self.rows]) = (bag, units);
        self.rows += 1;
        if self.rows == Self::MOST {
            self.take_all(sums);
        }
    }

    #[inline(always)]
    fn take_all(&mut self, sums: &mut Layers) {
        // What is left of former rows does not count.
        self.bags[self.rows..].fill([0.0; SIZE]);
        for (f, sum) in sums.h.iter_mut().enumerate() {
            let mut row = *sum;
            for (bag, units) in self.bags.iter().zip(&self.units) {
                for u in 0..UNITS {
                    row[u] += bag[f] * units[u];
                }
            }
            *sum = row;
        }
        self.rows = 0;
    }
}

/// The inner product in eight lanes, which are then added in halves: in registers.
#[inline(always)]
fn inner(a: &[f32; UNITS], b: &[f32; UNITS]) -> f32 {
    let mut lanes = [0.0f32; 8];
    for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let mut four = [0.0f32; 4];
    for lane in 0..4 {
        four[lane] = lanes[lane] + lanes[lane + 4];
    }
    (four[0] + four[2]) + (four[1] + four[3])
}

impl ByHand {
    fn new(model: &WideDeep, width: usize, batch: usize) -> Result<Self, Error> {
        let mut t = Lines::zeros(width * SIZE)?;
        t.get_mut()[..width * SIZE].copy_from_slice(model.t.values());
        let mut w = Lines::zeros(width)?;
        w.get_mut()[..width].copy_from_slice(model.w.values());
        let mut layers = Layers::zeros();
        for (to, from) in layers.h.iter_mut().zip(model.h.values().chunks_exact(UNITS)) {
            to.copy_from_slice(from);
        }
        layers.b.copy_from_slice(model.b.values());
        layers.g.copy_from_slice(model.g.values());
        let far = [is_far(w.get()), is_far(t.get())];
        Ok(ByHand { w, t, far, layers, batch, sums: Sums::new(width)? })
    }

    #[inline(always)]
    fn forward(&self, columns: &[u32], values: &[f32]) -> Passed {
        let t = self.t.get();
        let mut bag = [0.0f32; SIZE];
        for &column in columns {
            // SAFETY: `Csr` holds columns below its width, for which the table was made.
            let row: &[f32; SIZE] = unsafe { &*t.as_ptr().add(column as usize * SIZE).cast() };
            for f in 0..SIZE {
                bag[f] += row[f];
            }
        }
        let mut hidden = self.layers.b;
        for (x, row) in bag.iter().zip(&self.layers.h) {
            for u in 0..UNITS {
                hidden[u] += x * row[u];
            }
        }
        for u in 0..UNITS {
            hidden[u] = hidden[u].max(0.0);
        }
        let deep = inner(&hidden, &self.layers.g);
        Passed { bag, hidden, score: product::<1, f32>(columns, values, self.w.get()) + deep }
    }

    /// Adds to the sums of the layers but those of the first, whose terms wait; gives the gradient
    /// of the bag.
    #[inline(always)]
    fn backward(
        &self,
        passed: &Passed,
        grad: f32,
        sums: &mut Layers,
        waiting: &mut Waiting,
    ) -> [f32; SIZE] {
        let mut units = [0.0f32; UNITS];
        for u in 0..UNITS {
            sums.g[u] += grad * passed.hidden[u];
            units[u] = if passed.hidden[u] > 0.0 { grad * self.layers.g[u] } else { 0.0 };
            sums.b[u] += units[u];
        }
        waiting.add(passed.bag, units, sums);
        std::array::from_fn(|f| inner(&units, &self.layers.h[f]))
    }

    #[inline(always)]
    fn epoch(&mut self, x: Log<'_>) -> f64 {
        let mut losses = Losses::new();
        if self.batch == 1 {
            (0..x.n_rows()).for_each(|row| self.step(x, row, &mut losses));
            return losses.total();
        }
        for first in (0..x.n_rows()).step_by(self.batch) {
            let rows = first..x.n_rows().min(first + self.batch);
            let share = 1.0 / rows.len() as f32;
            let mut totals = Layers::<f64>::zeros();
            for start in rows.clone().step_by(RUN) {
                let (mut sums, mut waiting) = (Layers::zeros(), Waiting::none());
                for row in start..rows.end.min(start + RUN) {
                    self.ask_ahead(x, row);
                    let (columns, values) = x.row(row);
                    let passed = self.forward(columns, values);
                    let grad = share * losses.gradient(passed.score, x.labels[row]);
                    let of_bag = self.backward(&passed, grad, &mut sums, &mut waiting);
                    for (&column, value) in columns.iter().zip(values) {
                        self.sums.add(
                            column,
                            #[inline(always)]
                            |sum| {
                                (0..SIZE).for_each(|f| sum[f] += f64::from(of_bag[f]));
                                sum[SIZE] += f64::from(grad * value);
                            },
                        );
                    }
                }
                waiting.take_all(&mut sums);
                totals.zip(&sums, |total, sum| *total += f64::from(*sum));
            }
            self.layers.zip(&totals, |weight, total| *weight -= RATE * *total as f32);
            self.take_sums();
        }
        losses.total()
    }

    /// Updates both tables by the sums of a batch.
    #[inline(always)]
    fn take_sums(&mut self) {
        let ([w_is_far, t_is_far], w, t) = (self.far, self.w.get_mut(), self.t.get_mut());
        let [start_of_w, start_of_t] = [w.as_ptr(), t.as_ptr()];
        self.sums.take(
            #[inline(always)]
            |ahead| {
                if w_is_far {
                    prefetch_at(start_of_w.wrapping_add(ahead as usize));
                }
                if t_is_far {
                    prefetch_at(start_of_t.wrapping_add(ahead as usize * SIZE));
                }
            },
            #[inline(always)]
            |column, sum| {
                // SAFETY: as in `forward`.
                let row: &mut [f32; SIZE] = unsafe {
                    *w.get_unchecked_mut(column as usize) -= RATE * sum[SIZE];
                    &mut *t.as_mut_ptr().add(column as usize * SIZE).cast()
                };
                for f in 0..SIZE {
                    row[f] -= RATE * sum[f];
                }
            },
        );
    }

    /// A step of one row: layers and rows are updated by their gradients as these are computed.
    #[inline(always)]
    fn step(&mut self, x: Log<'_>, row: usize, losses: &mut Losses) {
        self.ask_ahead(x, row);
        let (columns, values) = x.row(row);
        let passed = self.forward(columns, values);
        let step = RATE * losses.gradient(passed.score, x.labels[row]);
        let mut units = [0.0f32; UNITS];
        for u in 0..UNITS {
            units[u] = if passed.hidden[u] > 0.0 { step * self.layers.g[u] } else { 0.0 };
            self.layers.g[u] -= step * passed.hidden[u];
            self.layers.b[u] -= units[u];
        }
        let mut of_bag = [0.0f32; SIZE];
        for f in 0..SIZE {
            of_bag[f] = inner(&units, &self.layers.h[f]);
            for u in 0..UNITS {
                self.layers.h[f][u] -= passed.bag[f] * units[u];
            }
        }
        self.subtract(columns, values, step, &of_bag);
    }

    /// Asks for what a later row of data reads.
    #[inline(always)]
    fn ask_ahead(&self, x: Log<'_>, row: usize) {
        x.ask(row);
        let [w_is_far, t_is_far] = self.far;
        if t_is_far && row + VECTORS_AHEAD < x.n_rows() {
            let (columns, _) = x.row(row + VECTORS_AHEAD);
            if self.batch > 1 {
                self.sums.ask(columns);
            }
            for &column in columns {
                if w_is_far {
                    prefetch(self.w.get(), column as usize);
                }
                prefetch(self.t.get(), column as usize * SIZE);
            }
        }
    }

    /// Takes a row's share from both tables: `of_score` times the values of the linear part,
    /// `of_bag` of the bag.
    #[inline(always)]
    fn subtract(&mut self, columns: &[u32], values: &[f32], of_score: f32, of_bag: &[f32; SIZE]) {
        let (w, t) = (self.w.get_mut(), self.t.get_mut());
        for (&column, value) in columns.iter().zip(values) {
            // SAFETY: as in `forward`.
            let row: &mut [f32; SIZE] = unsafe {
                *w.get_unchecked_mut(column as usize) -= of_score * value;
                &mut *t.as_mut_ptr().add(column as usize * SIZE).cast()
            };
            for f in 0..SIZE {
                row[f] -= of_bag[f];
            }
        }
    }

    /// The mean logistic loss, in `f64`.
    fn loss(&self, x: Log<'_>) -> f64 {
        let losses = x.labels.iter().enumerate().map(|(row, &label)| {
            let (columns, values) = x.row(row);
            let score = f64::from(self.forward(columns, values).score);
            score.max(0.0) + (-score.abs()).exp().ln_1p() - f64::from(label) * score
        });
        losses.sum::<f64>() / x.n_rows() as f64
    }
}
