//! Linear regression on sparse features: the reference tutorial, a 1000 × 100 csr matrix of density
//! 0.01, labels made with the weights 1, 2, … 100, batches of one row, SGD with momentum; or LibSVM
//! files.
//!
//! ```text
//! cargo run --release --example linear_regression
//! cargo run --release --example linear_regression -- imdb_rating.train.gz imdb_rating.test.gz
//! ```

use nnz::data::synthetic;
use nnz::ops;
use nnz::prelude::*;
use nnz::training::ScoreReport;
use std::process::ExitCode;

graph! {
    /// Least-squares regression on sparse features.
    pub model LinearRegression {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.01 };
        param b: dense[1] = Zeros;

        let pred = dot(x, w) + b;

        loss squared_error(pred, y);
        output pred;
    }
}

fn main() -> ExitCode {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let result = match &paths[..] {
        [] => tutorial(),
        [train, test] => fit(train, test),
        _ => {
            eprintln!("usage: linear_regression [TRAIN TEST]");
            return ExitCode::from(2);
        }
    };
    match result {
        // The tutorial's own bound.
        Ok(score) if score.metric("mse") > Some(1.0) => {
            eprintln!("linear_regression: {score}: mse is larger than expected (1.0)");
            return ExitCode::FAILURE;
        }
        Ok(score) => println!("{score}"),
        Err(error) => {
            eprintln!("linear_regression: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The error on the data that was learnt from.
fn tutorial() -> Result<ScoreReport> {
    let x: Csr = synthetic::random_csr(1000, 100, 0.01, 42)?;
    let target = Dense::new([100, 1], (1..=100).map(|weight| weight as f32).collect())?;
    let y = ops::dot(&x, &target)?;
    let data = Dataset::new(x, y.into_values())?;

    let mut model = LinearRegression::new(dims! { d: data.n_features() }, Seed(42))?;
    // Rows that a batch does not touch keep their momentum, exactly.
    // `lazy_update: LazyUpdate::Touched` leaves them alone, as MXNet does: it converges more slowly
    // here, to 0.4 and not to 0.002.
    let sgd = Sgd { learning_rate: 0.05, momentum: 0.9, ..Sgd::default() };
    let mut trainer = Trainer::new(sgd).batch_size(1).epochs(10).metric(Mse);
    trainer.fit(&mut model, &data)?;
    trainer.score(&mut model, &data)
}

/// Half the mean squared error, and its root, on the test file.
pub fn fit(train: &str, test: &str) -> Result<ScoreReport> {
    let train = libsvm::read(train, IndexBase::One)?;
    let d = train.n_features();
    let test = libsvm::Reader::new().index_base(IndexBase::One).n_features(d).read_path(test)?;

    let mut model = LinearRegression::new(dims! { d: d }, Seed(42))?;
    let sgd = Sgd { learning_rate: 0.3, weight_decay: 1e-4, ..Sgd::default() };
    // Down to 0 at the last step, so that little depends on which rows come last.
    let (epochs, unit) = (5, ScheduleUnit::Step);
    let total = epochs * train.n_rows() as u64;
    let schedule = Schedule::Polynomial { total, power: 1.0, end: 0.0, unit };
    let mut trainer = Trainer::new(sgd).epochs(epochs).schedule(schedule).metric(Rmse);
    trainer.fit(&mut model, &train)?;
    trainer.score(&mut model, &test)
}
