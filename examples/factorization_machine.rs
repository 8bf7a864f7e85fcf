//! A factorization machine on a click log in LibFFM's format, whose fields it does not use.
//!
//! ```text
//! cargo run --release --example factorization_machine -- criteo_tiny.train.ffm.gz \
//!     criteo_tiny.test.ffm.gz 429705
//! ```

#[path = "command_line/run.rs"]
mod command_line;

use command_line::run;
use nnz::data::{LibFfm, TextReader};
use nnz::prelude::*;
use nnz::training::ScoreReport;
use std::process::ExitCode;

graph! {
    /// A factorization machine of the second order; the output is the probability of the positive
    /// class.
    pub model FactorizationMachine {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, k] = Normal { mean: 0.0, std: 0.01 };
        param b: dense[1] = Zeros;

        let score = dot(x, w) + pairwise_interaction(x, v) + b;

        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> ExitCode {
    run("factorization_machine TRAIN TEST FEATURES", |words| match words {
        [train, test, features] => Some(fit(train, test, features.parse().ok()?)),
        _ => None,
    })
}

/// Log loss and AUC on the test file.
pub fn fit(train: &str, test: &str, features: usize) -> Result<ScoreReport> {
    let reader = TextReader::new(LibFfm::new().n_features(features));
    let (train, test) = (reader.read_path(train)?, reader.read_path(test)?);

    let mut model = FactorizationMachine::new(dims! { d: features, k: 4 }, Seed(42))?;
    let rule = AdaGrad { learning_rate: 0.01, ..AdaGrad::default() };
    let mut trainer = Trainer::new(rule).epochs(2).metric(Auc);
    trainer.fit(&mut model, &train)?;
    trainer.score(&mut model, &test)
}
