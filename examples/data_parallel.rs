//! A factorization machine trained by several workers that share its parameters through a store, on
//! a LibSVM file (gzip if it ends in .gz): the same bits for any number of workers.
//!
//! ```text
//! cargo run --release --example data_parallel -- a9a.gz 1
//! cargo run --release --example data_parallel -- a9a.gz 4
//! ```

#[path = "command_line/run.rs"]
mod command_line;

use command_line::run;
use nnz::prelude::*;
use std::process::ExitCode;

graph! {
    /// A factorization machine.
    pub model Machine {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 8] = Normal { mean: 0.0, std: 0.05 };
        param b: dense[1] = Zeros;
        let score = dot(x, w) + pairwise_interaction(x, v) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> ExitCode {
    run("data_parallel TRAIN WORKERS", |words| match words {
        [train, workers] => Some(fit(train, workers.parse().ok()?)),
        _ => None,
    })
}

/// A number that any change of any bit of the model changes.
fn fit(train: &str, n_workers: usize) -> Result<String> {
    let data = libsvm::read(train, IndexBase::Detect)?;
    let mut model = Machine::new(dims! { d: data.n_features() }, Seed(42))?;
    let rule = AdaGrad { learning_rate: 0.05, ..AdaGrad::default() };
    Trainer::new(rule)
        .batch_size(1024)
        .epochs(5)
        .metric(LogLoss)
        .evaluation(&data)
        .fit_on_threads(&mut model, &data, n_workers)?;
    let values = model.v.values().iter().chain(model.w.values());
    let mixed = values.fold(0u64, |sum, v| sum.rotate_left(5) ^ u64::from(v.to_bits()));
    Ok(format!("all bits of the model: {mixed:016x}"))
}
