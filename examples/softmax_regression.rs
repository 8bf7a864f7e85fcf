//! Multinomial logistic regression on LibSVM files, one class a label that occurs in the training
//! data.
//!
//! ```text
//! cargo run --release --example softmax_regression -- dna.scale dna.scale.t
//! ```

#[path = "command_line/run.rs"]
mod command_line;

use command_line::run;
use nnz::prelude::*;
use nnz::training::ScoreReport;
use std::process::ExitCode;

graph! {
    /// Multinomial logistic regression; the outputs are the probabilities of the classes.
    pub model SoftmaxRegression {
        input x: csr[n, d];
        label y: dense<u32>[n];

        param w: row_sparse[d, k] = Zeros;
        param b: dense[k] = Zeros;

        let scores = dot(x, w) + b;

        loss softmax_cross_entropy(scores, y);
        output probabilities = softmax(scores);
    }
}

fn main() -> ExitCode {
    run("softmax_regression TRAIN TEST", |words| match words {
        [train, test] => Some(fit(train, test)),
        _ => None,
    })
}

/// Loss and accuracy on the test file.
pub fn fit(train: &str, test: &str) -> Result<ScoreReport> {
    let (train, classes) = libsvm::read(train, IndexBase::One)?.into_classes()?;
    let d = train.n_features();
    let test = libsvm::Reader::new().index_base(IndexBase::One).n_features(d).read_path(test)?;
    let test = test.with_classes(&classes)?;

    let mut model = SoftmaxRegression::new(dims! { d: d, k: classes.len() }, Seed(42))?;
    let sgd = Sgd { learning_rate: 0.02, weight_decay: 1e-3, ..Sgd::default() };
    let schedule = Schedule::Exponential { factor: 0.7, unit: ScheduleUnit::Epoch };
    let mut trainer = Trainer::new(sgd).epochs(10).schedule(schedule).metric(Accuracy);
    trainer.fit(&mut model, &train)?;
    trainer.score(&mut model, &test)
}
