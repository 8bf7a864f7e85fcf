//! Wide and deep on Criteo's log: a linear model of the hashed columns, and embeddings of them
//! through two dense layers.
//!
//! ```text
//! cargo run --release --example wide_deep -- criteo_raw8k.train.tsv.gz criteo_raw8k.test.tsv
//! ```

#[path = "command_line/run.rs"]
mod command_line;

use command_line::run;
use nnz::data::{Delimited, Hashing, TextReader};
use nnz::prelude::*;
use nnz::training::ScoreReport;
use std::process::ExitCode;

graph! {
    /// A wide part and a deep one; the output is the probability of the positive class.
    pub model WideDeep {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, 8] = Normal { mean: 0.0, std: 0.05 };
        param h: dense[8, 32] = Normal { mean: 0.0, std: 0.2 };
        param a: dense[32] = Zeros;
        param g: dense[32, 1] = Normal { mean: 0.0, std: 0.2 };
        param b: dense[1] = Zeros;

        let hidden = relu(dot(embedding_bag(x, t), h) + a);
        let score = dot(x, w) + dot(hidden, g) + b;

        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> ExitCode {
    run("wide_deep TRAIN TEST", |words| match words {
        [train, test] => Some(fit(train, test)),
        _ => None,
    })
}

/// Log loss and AUC on the test file.
pub fn fit(train: &str, test: &str) -> Result<ScoreReport> {
    let reader = TextReader::new(Delimited::criteo(Hashing::new(18)?));
    let (train, test): (Dataset, Dataset) = (reader.read_path(train)?, reader.read_path(test)?);

    let mut model = WideDeep::new(dims! { d: train.n_features() }, Seed(42))?;
    let rule = AdaGrad { learning_rate: 0.03, weight_decay: 0.01, ..AdaGrad::default() };
    let mut trainer = Trainer::new(rule).batch_size(16).epochs(1).metric(Auc);
    trainer.fit(&mut model, &train)?;
    trainer.score(&mut model, &test)
}
