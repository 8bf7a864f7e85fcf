//! The reference's tutorial: linear regression on 1000 rows of 100 features, one in a hundred
//! stored, batches of one row, momentum 0.9. Rows are caught up exactly: both sides have momentum
//! move every weight at every step.

use crate::data::{Data, Random};
use crate::workload::{Error, Named, Workload};
use nnz::optimizer::Updater;
use nnz::prelude::*;

graph! {
    /// Least squares.
    pub model LinearRegression {
        specialize = [Sgd, AdaGrad, Ftrl, Adam];
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let pred = dot(x, w) + b;
        loss squared_error(pred, y);
        output pred;
    }
}

const ROWS: usize = 1000;
const FEATURES: usize = 100;
/// Epochs a measurement.
const EPOCHS: u64 = 100;
const RATE: f32 = 0.05;
const MOMENTUM: f32 = 0.9;

/// As many entries as rows, anywhere; labels by the features' weights and a bias.
fn dataset() -> Result<Dataset, Error> {
    let mut random = Random(5);
    let mut below = |end: usize| (random.uniform() * end as f64) as usize;
    let mut rows = vec![Vec::new(); ROWS];
    let mut labels = vec![-0.25f32; ROWS];
    for _ in 0..ROWS {
        let (row, column) = (below(ROWS), below(FEATURES));
        let value = below(1000) as f32 / 1000.0;
        rows[row].push((column, value));
        labels[row] += value * (column % 7) as f32;
    }
    for row in &mut rows {
        row.sort_by_key(|(column, _)| *column);
        row.dedup_by_key(|(column, _)| *column);
    }
    Ok(Dataset::new(Csr::from_rows(FEATURES, rows)?, labels)?)
}

pub fn workloads(_: &Data) -> Vec<Named<'_>> {
    vec![Named::new("tutorial 1000 x 100 sgd with momentum batch 1", || {
        let data = std::rc::Rc::new(dataset()?);
        let model = LinearRegression::new(dims! { d: FEATURES }, Seed(0))?;
        let rule =
            Sgd { learning_rate: f64::from(RATE), momentum: f64::from(MOMENTUM), ..Sgd::default() };
        let trainer = Trainer::new(rule).shuffle(false).progress(Progress::Silent);
        let updater = trainer.updater(&model)?;
        let run = data.clone();
        Ok(Workload::per_second("M samples/s", ROWS as f64 * EPOCHS as f64 / 1e6)
            .tolerance(1e-3)
            .contestant(
                "nnz",
                Ours { model, trainer, updater, epoch: 0 },
                move |ours| ours.run(&run),
                |ours| sum(ours.model.w.values().iter().chain(ours.model.b.values())),
            )
            .contestant(
                "by hand",
                ByHand::default(),
                move |by_hand| by_hand.run(&data),
                |by_hand| sum(by_hand.rows.iter().map(|row| &row.weight).chain([&by_hand.bias])),
            ))
    })]
}

fn sum<'a>(values: impl IntoIterator<Item = &'a f32>) -> f64 {
    values.into_iter().map(|value| f64::from(*value).abs()).sum()
}

struct Ours {
    model: LinearRegression,
    trainer: Trainer<'static, Sgd>,
    updater: Updater<Sgd, f32>,
    epoch: u64,
}

impl Ours {
    fn run(&mut self, data: &Dataset) {
        let epochs = self.epoch..self.epoch + EPOCHS;
        self.epoch += EPOCHS;
        if let Err(error) =
            self.trainer.fit_epochs(&mut self.model, &mut self.updater, data, epochs)
        {
            eprintln!("{error}");
        }
    }
}

/// A weight, its velocity, and the step up to which both are settled.
#[derive(Clone, Copy, Default)]
struct Row {
    weight: f32,
    velocity: f32,
    settled: u32,
}

struct ByHand {
    rows: [Row; FEATURES],
    bias: f32,
    velocity: f32,
    /// μᵏ and μ + … + μᵏ.
    powers: Vec<(f32, f32)>,
    loss: f64,
}

impl Default for ByHand {
    fn default() -> Self {
        let mut powers = vec![(1.0, 0.0)];
        let (mut power, mut total) = (1.0f64, 0.0f64);
        for _ in 0..=ROWS {
            power *= f64::from(MOMENTUM);
            total += power;
            powers.push((power as f32, total as f32));
        }
        ByHand { rows: [Row::default(); FEATURES], bias: 0.0, velocity: 0.0, powers, loss: 0.0 }
    }
}

impl ByHand {
    fn run(&mut self, data: &Dataset) {
        let Some(log) = super::hand::Log::of(data) else { return };
        for _ in 0..EPOCHS {
            self.epoch(log);
        }
    }

    /// Momentum moves a weight by v(μ + … + μᵏ) in k steps without a gradient. Steps count from the
    /// start of the epoch, at whose end all rows are settled.
    #[inline(never)]
    fn epoch(&mut self, log: super::hand::Log<'_>) {
        self.loss = 0.0;
        for step in 0..ROWS {
            let (columns, values) = log.row(step);
            let mut score = self.bias;
            for (column, value) in columns.iter().zip(values) {
                let row = &mut self.rows[*column as usize];
                let (power, total) = self.powers[step - row.settled as usize];
                row.weight += total * row.velocity;
                row.velocity *= power;
                score += value * row.weight;
            }
            let error = score - log.labels[step];
            self.loss += f64::from(0.5 * error * error);
            for (column, value) in columns.iter().zip(values) {
                let row = &mut self.rows[*column as usize];
                row.velocity = MOMENTUM * row.velocity - RATE * error * value;
                row.weight += row.velocity;
                row.settled = step as u32 + 1;
            }
            self.velocity = MOMENTUM * self.velocity - RATE * error;
            self.bias += self.velocity;
        }
        for row in &mut self.rows {
            let (power, total) = self.powers[ROWS - row.settled as usize];
            row.weight += total * row.velocity;
            row.velocity *= power;
            row.settled = 0;
        }
    }
}
