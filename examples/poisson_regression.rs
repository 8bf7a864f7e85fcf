//! Poisson regression of counts on LibSVM files: the mean of a row's label is the exponential of a
//! linear score.
//!
//! ```text
//! cargo run --release --example poisson_regression -- abalone_scale abalone_scale
//! ```

#[path = "command_line/run.rs"]
mod command_line;

use command_line::run;
use nnz::prelude::*;
use nnz::training::ScoreReport;
use std::process::ExitCode;

graph! {
    /// Poisson regression; the output is the expected count.
    pub model PoissonRegression {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;

        let score = dot(x, w) + b;

        loss poisson(score, y);
        output count = exp(score);
    }
}

fn main() -> ExitCode {
    run("poisson_regression TRAIN TEST", |words| match words {
        [train, test] => Some(fit(train, test)),
        _ => None,
    })
}

/// The loss on the test file, exp(s) - count · s, and the root of the mean squared error of the
/// expected counts.
pub fn fit(train: &str, test: &str) -> Result<ScoreReport> {
    let train = libsvm::read(train, IndexBase::One)?;
    let d = train.n_features();
    let test = libsvm::Reader::new().index_base(IndexBase::One).n_features(d).read_path(test)?;

    let mut model = PoissonRegression::new(dims! { d: d }, Seed(42))?;
    let sgd = Sgd { learning_rate: 0.002, momentum: 0.9, ..Sgd::default() };
    let schedule = Schedule::Exponential { factor: 0.9, unit: ScheduleUnit::Epoch };
    let mut trainer = Trainer::new(sgd).batch_size(8).epochs(40).schedule(schedule).metric(Rmse);
    trainer.fit(&mut model, &train)?;
    trainer.score(&mut model, &test)
}
