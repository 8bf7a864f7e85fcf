//! Logistic regression on LibSVM files (gzip if they end in .gz); the model is saved and loaded
//! again.
//!
//! ```text
//! cargo run --release --example logistic_regression -- a9a.gz a9a.t.gz
//! ```

#[path = "command_line/run.rs"]
mod command_line;

use command_line::run;
use nnz::prelude::*;
use nnz::training::ScoreReport;
use std::process::ExitCode;

graph! {
    /// Logistic regression; the output is the probability of the positive class.
    pub model LogisticRegression {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;

        let score = dot(x, w) + b;

        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> ExitCode {
    run("logistic_regression TRAIN TEST", |words| match words {
        [train, test] => Some(fit(train, test)),
        _ => None,
    })
}

/// Log loss, accuracy and AUC on the test file.
pub fn fit(train: &str, test: &str) -> Result<ScoreReport> {
    let train = libsvm::read(train, IndexBase::Detect)?;
    println!("{train}\n{}", LogisticRegression::PLAN);
    let test = libsvm::Reader::new().n_features(train.n_features()).read_path(test)?;

    let mut model = LogisticRegression::new(dims! { d: train.n_features() }, Seed(42))?;
    let sgd = Sgd { learning_rate: 0.1, weight_decay: 1e-5, ..Sgd::default() };
    let mut trainer = Trainer::new(sgd)
        .batch_size(8)
        .epochs(5)
        .schedule(Schedule::Exponential { factor: 0.5, unit: ScheduleUnit::Epoch })
        .metric(Accuracy)
        .metric(Auc)
        .evaluation(&test);
    trainer.fit(&mut model, &train)?;

    // Saved beside and renamed; loading refuses a file of another graph.
    let path = std::env::temp_dir().join(format!("nnz-logistic-{}", std::process::id()));
    checkpoint::save(&model, &path)?;
    let mut loaded = LogisticRegression::new(dims! { d: train.n_features() }, Seed(0))?;
    checkpoint::load(&mut loaded, &path)?;
    println!("saved to {}, and loaded again", path.display());
    let _ = std::fs::remove_file(&path);
    trainer.score(&mut loaded, &test)
}
