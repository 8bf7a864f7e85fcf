//! Eight models, and what they are trained on.

use nnz::data::synthetic;
use nnz::prelude::*;
use std::error::Error;

graph! {
    /// Least squares.
    pub model Linear {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss squared_error(score, y);
        output score;
    }
}

graph! {
    /// Without a bias, as in `benches/ratios`.
    pub model Logistic {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output score;
    }
}

graph! {
    /// Counts.
    pub model Poisson {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss poisson(score, y);
        output score;
    }
}

graph! {
    /// Ten classes.
    pub model Softmax {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, 10] = Zeros;
        param b: dense[10] = Zeros;
        let scores = dot(x, w) + b;
        loss softmax_cross_entropy(scores, y);
        output scores;
    }
}

graph! {
    /// A factorization machine of 16 factors.
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

graph! {
    /// Classes of texts by the mean of their words' vectors.
    pub model Texts {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param t: row_sparse[d, 16] = Normal { mean: 0.0, std: 0.05 };
        param h: dense[16, 10] = Normal { mean: 0.0, std: 0.2 };
        let scores = dot(embedding_bag(x, t, mean = true), h);
        loss softmax_cross_entropy(scores, y);
        output scores;
    }
}

graph! {
    /// Ratings by factors and biases of users and items.
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

/// Samples of a log of clicks.
pub const SAMPLES: usize = 100_000;
/// Features of the log; 39 of them in a sample.
pub const FEATURES: usize = 1 << 20;
pub const RATINGS: usize = 250_000;
pub const USERS: usize = 50_000;
pub const ITEMS: usize = 10_000;

/// What the models are trained on.
pub struct Data {
    /// Clicks or none.
    pub clicks: Dataset,
    /// The same samples, of ten classes.
    pub classes: Dataset,
    pub ratings: Dataset,
}

impl Data {
    pub fn new() -> Result<Self, Box<dyn Error>> {
        let clicks = synthetic::click_log(SAMPLES, FEATURES, 39, 42)?;
        let features = clicks.features().ok_or("the log is csr")?.clone();
        let classes = (0..SAMPLES as u32).map(|sample| sample * 7 % 10).collect::<Vec<_>>();
        let classes = Dataset::builder()
            .input("x", features)
            .label("y", Dense::new([SAMPLES], classes)?)
            .build()?;
        Ok(Data { clicks, classes, ratings: ratings()? })
    }
}

/// The probability of the r-th most frequent user or item is about 1/r.
fn ratings() -> Result<Dataset, Box<dyn Error>> {
    let mut state = 11_u64;
    let mut draw = |count: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
        (count as f64).powf(uniform) as u32 * 7919 % count as u32
    };
    let (users, items): (Vec<u32>, Vec<u32>) =
        (0..RATINGS).map(|_| (draw(USERS), draw(ITEMS))).unzip();
    let rate = |(user, item): (&u32, &u32)| ((user * 31 + item * 17) % 5) as f32 - 2.0;
    let ratings = users.iter().zip(&items).map(rate).collect::<Vec<_>>();
    Ok(Dataset::builder()
        .input("user", Dense::new([RATINGS], users)?)
        .input("item", Dense::new([RATINGS], items)?)
        .label("rating", Dense::new([RATINGS], ratings)?)
        .build()?)
}
