//! Matrix factorization with 16 factors and biases, on ratings of which some users and items have
//! many.

use super::emitted::Emitted;
use super::hand::{Lines, on_this_processor};
use super::sums::Sums;
use crate::data::{Data, Random};
use crate::workload::{Error, Named, Workload};
use nnz::prelude::*;

graph! {
    /// Factors and biases of users and items.
    pub model Factors {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n];
        param p: row_sparse[users, 16] = Normal { mean: 0.0, std: 0.1 };
        param q: row_sparse[items, 16] = Normal { mean: 0.0, std: 0.1 };
        param of_user: row_sparse[users] = Zeros;
        param of_item: row_sparse[items] = Zeros;
        let score = sum(take(p, user) * take(q, item), axis = 1)
            + take(of_user, user) + take(of_item, item);
        loss squared_error(score, rating);
        output score;
    }
}

const SIZE: usize = 16;
pub const USERS: usize = 50_000;
pub const ITEMS: usize = 10_000;
const RATINGS: usize = 500_000;
pub const RATE: f32 = 0.02;

/// Ratings by user and item.
pub struct Ratings {
    users: Vec<u32>,
    items: Vec<u32>,
    ratings: Vec<f32>,
}

/// The probability of the r-th most frequent user or item is about 1/r.
pub fn ratings() -> Ratings {
    let mut random = Random(11);
    let mut draw =
        |count: usize| (count as f64).powf(random.uniform()) as u32 * 7919 % count as u32;
    let (users, items): (Vec<u32>, Vec<u32>) =
        (0..RATINGS).map(|_| (draw(USERS), draw(ITEMS))).unzip();
    let rate = |(user, item): (&u32, &u32)| ((user * 31 + item * 17) % 5) as f32 - 2.0;
    let ratings = users.iter().zip(&items).map(rate).collect();
    Ratings { users, items, ratings }
}

pub fn dataset(data: &Ratings) -> Result<Dataset, Error> {
    Ok(Dataset::builder()
        .input("user", Dense::new([RATINGS], data.users.clone())?)
        .input("item", Dense::new([RATINGS], data.items.clone())?)
        .label("rating", Dense::new([RATINGS], data.ratings.clone())?)
        .build()?)
}

pub fn workloads(_: &Data) -> Vec<Named<'_>> {
    [1, 1024].map(workload).into()
}

fn workload<'a>(batch: usize) -> Named<'a> {
    Named::new(format!("matrix factorization k = 16 sgd batch {batch}"), move || {
        let data = std::rc::Rc::new(ratings());
        let set = dataset(&data)?;
        let model = Factors::new(dims! { users: USERS, items: ITEMS }, Seed(0))?;
        let by_hand = ByHand::new(&model, batch)?;
        let rule = Sgd { learning_rate: f64::from(RATE), ..Sgd::default() };
        let [run, ours, theirs] = [data.clone(), data.clone(), data];
        Ok(Workload::per_second("M samples/s", RATINGS as f64 / 1e6)
            .tolerance(2e-3)
            .contestant(
                "nnz",
                Emitted::new(model, rule, batch)?,
                move |emitted| emitted.run(&set),
                move |emitted| {
                    let copy = ByHand::new(&emitted.model, 1);
                    copy.map_or(f64::NAN, |copy| copy.loss(&ours))
                },
            )
            .contestant(
                "by hand",
                by_hand,
                move |by_hand| {
                    on_this_processor(
                        #[inline(always)]
                        || by_hand.epoch(&run),
                    );
                },
                move |by_hand| by_hand.loss(&theirs),
            ))
    })
}

struct ByHand {
    p: Lines,
    q: Lines,
    of_user: Vec<f32>,
    of_item: Vec<f32>,
    batch: usize,
    /// Of a batch: for each user, and for each item, the gradients of the factors, and behind them
    /// that of the bias.
    sums_of_users: Sums<{ SIZE + 1 }>,
    sums_of_items: Sums<{ SIZE + 1 }>,
}

fn lines(values: &[f32]) -> Result<Lines, Error> {
    let mut lines = Lines::zeros(values.len())?;
    lines.get_mut()[..values.len()].copy_from_slice(values);
    Ok(lines)
}

/// A row of a table.
///
/// # Safety
///
/// The table has it.
#[inline(always)]
unsafe fn row(table: &[f32], id: u32) -> &[f32; SIZE] {
    // SAFETY: as the caller says.
    unsafe { &*table.as_ptr().add(id as usize * SIZE).cast() }
}

/// `table[id] -= step · by`.
///
/// # Safety
///
/// The table has the row.
#[inline(always)]
unsafe fn add(table: &mut [f32], id: u32, step: f32, by: &[f32; SIZE]) {
    // SAFETY: as the caller says.
    let row: &mut [f32; SIZE] = unsafe { &mut *table.as_mut_ptr().add(id as usize * SIZE).cast() };
    for f in 0..SIZE {
        row[f] -= step * by[f];
    }
}

/// The step of a row of factors and of its bias by their summed gradients.
#[inline(always)]
fn step_of(factors: &mut [f32], biases: &mut [f32]) -> impl FnMut(u32, &[f32; SIZE + 1]) {
    #[inline(always)]
    move |id, sum| {
        if let Some(of_factors) = sum.first_chunk::<SIZE>() {
            // SAFETY: ids are drawn below the extents of the tables.
            unsafe { add(factors, id, RATE, of_factors) };
            biases[id as usize] -= RATE * sum[SIZE];
        }
    }
}

impl ByHand {
    fn new(model: &Factors, batch: usize) -> Result<Self, Error> {
        Ok(ByHand {
            p: lines(model.p.values())?,
            q: lines(model.q.values())?,
            of_user: model.of_user.values().to_vec(),
            of_item: model.of_item.values().to_vec(),
            batch,
            sums_of_users: Sums::new(USERS)?,
            sums_of_items: Sums::new(ITEMS)?,
        })
    }

    #[inline(always)]
    fn score(&self, user: u32, item: u32) -> f32 {
        // SAFETY: ids are drawn below the extents of the tables.
        let (p, q) = unsafe { (row(self.p.get(), user), row(self.q.get(), item)) };
        let mut lanes = [0.0f32; 4];
        for f in 0..SIZE {
            lanes[f % 4] += p[f] * q[f];
        }
        let biases = self.of_user[user as usize] + self.of_item[item as usize];
        (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + biases
    }

    #[inline(always)]
    fn epoch(&mut self, data: &Ratings) {
        if self.batch == 1 {
            for sample in 0..RATINGS {
                let (user, item) = (data.users[sample], data.items[sample]);
                let (error, p, q) = self.error(data, sample);
                self.update(user, item, RATE * error, &p, &q);
            }
            return;
        }
        for first in (0..RATINGS).step_by(self.batch) {
            let samples = first..RATINGS.min(first + self.batch);
            let share = 1.0 / samples.len() as f32;
            for sample in samples {
                let (error, p, q) = self.error(data, sample);
                let grad = share * error;
                let add = |by: [f32; SIZE]| {
                    #[inline(always)]
                    move |sum: &mut [f64; SIZE + 1]| {
                        for f in 0..SIZE {
                            sum[f] += f64::from(grad * by[f]);
                        }
                        sum[SIZE] += f64::from(grad);
                    }
                };
                self.sums_of_users.add(data.users[sample], add(q));
                self.sums_of_items.add(data.items[sample], add(p));
            }
            let (p, of_user) = (self.p.get_mut(), &mut self.of_user);
            self.sums_of_users.take(|_| (), step_of(p, of_user));
            let (q, of_item) = (self.q.get_mut(), &mut self.of_item);
            self.sums_of_items.take(|_| (), step_of(q, of_item));
        }
    }

    /// The error of a rating, and the rows that it is made of.
    #[inline(always)]
    fn error(&self, data: &Ratings, sample: usize) -> (f32, [f32; SIZE], [f32; SIZE]) {
        let (user, item) = (data.users[sample], data.items[sample]);
        let error = self.score(user, item) - data.ratings[sample];
        // SAFETY: as in `score`.
        let (p, q) = unsafe { (*row(self.p.get(), user), *row(self.q.get(), item)) };
        (error, p, q)
    }

    #[inline(always)]
    fn update(&mut self, user: u32, item: u32, step: f32, p: &[f32; SIZE], q: &[f32; SIZE]) {
        // SAFETY: as in `score`.
        unsafe {
            add(self.p.get_mut(), user, step, q);
            add(self.q.get_mut(), item, step, p);
        }
        self.of_user[user as usize] -= step;
        self.of_item[item as usize] -= step;
    }

    /// Half the mean squared error, in `f64`.
    fn loss(&self, data: &Ratings) -> f64 {
        let ids = data.users.iter().zip(&data.items).zip(&data.ratings);
        let errors =
            ids.map(|((&user, &item), &rating)| f64::from(self.score(user, item) - rating));
        errors.map(|error| error * error / 2.0).sum::<f64>() / RATINGS as f64
    }
}
