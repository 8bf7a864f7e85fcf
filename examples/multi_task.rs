//! Two tasks, one table: the stars that a review gives, and whether it is a good one (7 stars or
//! more).
//!
//! ```text
//! cargo run --release --example multi_task -- imdb_rating.train.gz imdb_rating.test.gz
//! ```

#[path = "command_line/run.rs"]
mod command_line;

use command_line::run;
use nnz::data::{BatchOptions, Batches, ColumnValues, DataError, DataSource};
use nnz::prelude::*;
use std::process::ExitCode;

graph! {
    /// A number and a class of the same rows, from what a bag of words has in common for both.
    pub model MultiTask {
        input x: csr[n, d];
        label amount: dense[n, 1];
        label event: dense[n, 1];

        param t: row_sparse[d, k] = Normal { mean: 0.0, std: 0.1 };
        param u: dense[k, 1] = Normal { mean: 0.0, std: 0.5 };
        param v: dense[k, 1] = Normal { mean: 0.0, std: 0.5 };
        param a: dense[1] = Zeros;
        param b: dense[1] = Zeros;

        let shared = dot(x, t);
        let mean = dot(shared, u) + a;
        let score = dot(shared, v) + b;

        loss squared_error(mean, amount);
        loss logistic(score, event);
        output mean;
        output probability = sigmoid(score);
    }
}

fn main() -> ExitCode {
    run("multi_task TRAIN TEST", |words| match words {
        [train, test] => Some(
            fit(train, test)
                .map(|(rmse, accuracy)| format!("rmse {rmse:.4} accuracy {accuracy:.4}")),
        ),
        _ => None,
    })
}

/// The root of the mean squared error of the stars, and the part of the reviews that are told
/// apart, on the test file.
pub fn fit(train: &str, test: &str) -> Result<(f64, f64)> {
    let train = read(train, None)?;
    let test = read(test, Some(train.n_features()))?;

    let mut model = MultiTask::new(dims! { d: train.n_features(), k: 4 }, Seed(42))?;
    let rule = AdaGrad { learning_rate: 0.05, weight_decay: 1e-6, ..AdaGrad::default() };
    let mut trainer = Trainer::new(rule).batch_size(8).epochs(3).metric(Rmse);
    trainer.fit(&mut model, &train)?;

    // Metrics are of the first output; the second one is compared here.
    let rmse = trainer.score(&mut model, &test)?.metric("rmse").unwrap_or(f64::NAN);
    let mut batches = test.batches(MultiTask::INPUTS, &BatchOptions::default())?;
    let mut n_right = 0;
    while let Some(batch) = batches.next_batch()? {
        let batch = model.bind(&batch)?;
        let probability = model.forward(&batch)?.probability.values()[0];
        n_right += usize::from((probability > 0.5) == (batch.event.values()[0] > 0.5));
    }
    Ok((rmse, n_right as f64 / test.n_rows() as f64))
}

/// Reviews with both labels: the stars, and 1 for 7 stars or more.
fn read(path: &str, n_features: Option<usize>) -> Result<Dataset> {
    let reader = libsvm::Reader::new().index_base(IndexBase::One).n_features(n_features);
    let data: Dataset = reader.read_path(path)?;
    let (Some(x), Some(ColumnValues::Dense(stars))) = (data.features(), data.labels()) else {
        return Err(DataError::NoInput.into());
    };
    let good: Vec<f32> = stars.values().iter().map(|&stars| f32::from(stars >= 7.0)).collect();
    let data = Dataset::builder().input("x", x.clone()).label("amount", stars.values().to_vec());
    Ok(data.label("event", good).build()?)
}
