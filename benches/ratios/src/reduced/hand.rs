//! SVRG and SAGA for L2-regularised logistic regression, one row a step, a column caught up when it
//! is read. Losses are reported, as a trainer does.

use crate::data::Random;
use crate::steps::hand::{AHEAD, DATA_AHEAD, Log, Losses, is_far, prefetch};

/// A column: its weight, the mean gradient, and the step up to which the weight is settled.
#[derive(Clone, Copy, Default)]
struct Column {
    weight: f32,
    mean: f32,
    settled: u32,
}

/// What k steps without a gradient make of a weight: `scale · w - drift · mean`.
#[derive(Clone, Copy)]
struct Power {
    scale: f32,
    drift: f32,
}

/// The state of a run.
pub struct ByHand {
    columns: Vec<Column>,
    /// The derivative of each row's loss by its score: at the snapshot, or when it was last seen.
    derivatives: Vec<f32>,
    order: Vec<u32>,
    random: Random,
    powers: Vec<Power>,
    /// Of the last epoch: the losses of rows just before they were learnt from.
    pub loss: f64,
}

impl ByHand {
    /// At zero; rows come in orders by the seed.
    pub fn new(x: Log<'_>, seed: u64) -> Self {
        ByHand {
            columns: vec![Column::default(); x.width],
            derivatives: vec![0.0; x.n_rows()],
            order: (0..x.n_rows() as u32).collect(),
            random: Random(3 + seed),
            powers: Vec::new(),
            loss: 0.0,
        }
    }

    pub fn weights(&self) -> impl Iterator<Item = f32> + Clone {
        self.columns.iter().map(|column| column.weight)
    }

    /// The full gradient, and two epochs of corrected steps.
    #[inline(never)]
    pub fn svrg_epochs(&mut self, x: Log<'_>, rate: f32, l2: f32) {
        self.tabulate(x.n_rows(), rate, l2);
        self.columns.iter_mut().for_each(|column| column.mean = 0.0);
        let share = 1.0 / x.n_rows() as f32;
        for row in 0..x.n_rows() {
            let (ids, values) = x.row(row);
            let score: f32 = dot(ids, values, |id| self.columns[id].weight);
            let derivative = sigmoid(score) - x.labels[row];
            self.derivatives[row] = derivative;
            for (&id, value) in ids.iter().zip(values) {
                self.columns[id as usize].mean += share * derivative * value;
            }
        }
        for _ in 0..super::UPDATE_FREQ {
            self.epoch::<false>(x, rate, l2);
        }
    }

    /// An epoch in which derivatives are replaced as rows are seen.
    #[inline(never)]
    pub fn saga_epoch(&mut self, x: Log<'_>, rate: f32, l2: f32) {
        self.tabulate(x.n_rows(), rate, l2);
        self.epoch::<true>(x, rate, l2);
    }

    /// An epoch of steps that are for the difference of a row's derivative and the one that is
    /// kept. Where it `REPLACES`, the new one takes the place of that, in the mean as well.
    #[inline(always)]
    fn epoch<const REPLACES: bool>(&mut self, x: Log<'_>, rate: f32, l2: f32) {
        self.random.shuffle(&mut self.order);
        let (scale, share) = (1.0 - rate * l2, 1.0 / x.n_rows() as f32);
        let (columns, powers) = (&mut self.columns[..], &self.powers[..]);
        let mut losses = Losses::new();
        let are_far = is_far(columns);
        for (step, &row) in (0..).zip(&self.order) {
            if let Some(&later) = self.order.get(step as usize + DATA_AHEAD) {
                x.ask_for(later as usize);
            }
            if are_far && let Some(&later) = self.order.get(step as usize + AHEAD) {
                for &id in x.row(later as usize).0 {
                    prefetch(columns, id as usize);
                }
            }
            let (ids, values) = x.row(row as usize);
            let score = dot(ids, values, |id| {
                let column = &mut columns[id];
                let power = powers[(step - column.settled) as usize];
                let weight = power.scale * column.weight - power.drift * column.mean;
                // All of the step that needs no gradient.
                column.weight = scale * weight - rate * column.mean;
                column.settled = step + 1;
                weight
            });
            let derivative = losses.gradient(score, x.labels[row as usize]);
            let kept = &mut self.derivatives[row as usize];
            let difference = derivative - *kept;
            if REPLACES {
                *kept = derivative;
            }
            let (of_weight, of_mean) = (rate * difference, share * difference);
            for (&id, value) in ids.iter().zip(values) {
                let column = &mut columns[id as usize];
                column.weight -= of_weight * value;
                if REPLACES {
                    column.mean += of_mean * value;
                }
            }
        }
        for column in columns {
            let power = powers[self.order.len() - column.settled as usize];
            column.weight = power.scale * column.weight - power.drift * column.mean;
            column.settled = 0;
        }
        self.loss = losses.total();
    }

    /// Powers for as many steps as an epoch has.
    fn tabulate(&mut self, n_steps: usize, rate: f32, l2: f32) {
        if !self.powers.is_empty() {
            return;
        }
        let (rate, scale) = (f64::from(rate), 1.0 - f64::from(rate) * f64::from(l2));
        let (mut power, mut drift) = (1.0, 0.0);
        for _ in 0..=n_steps {
            self.powers.push(Power { scale: power as f32, drift: drift as f32 });
            drift = scale * drift + rate;
            power *= scale;
        }
    }
}

/// In four sums, so that an addition does not wait for the one before it.
#[inline(always)]
fn dot(ids: &[u32], values: &[f32], mut weight: impl FnMut(usize) -> f32) -> f32 {
    let mut sums = [0.0; 4];
    let (id_chunks, id_rest) = ids.as_chunks::<4>();
    let (value_chunks, value_rest) = values.as_chunks::<4>();
    for (ids, values) in id_chunks.iter().zip(value_chunks) {
        for lane in 0..4 {
            sums[lane] += values[lane] * weight(ids[lane] as usize);
        }
    }
    for (lane, (id, value)) in id_rest.iter().zip(value_rest).enumerate() {
        sums[lane] += value * weight(*id as usize);
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

#[inline(always)]
fn sigmoid(score: f32) -> f32 {
    1.0 / (1.0 + (-score).exp())
}
