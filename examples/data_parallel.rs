//! A factorization machine trained by several workers that share its parameters through a store, on a LibSVM file (gzip if it ends in
//! .gz): the same bits for any number of workers.
//!
//! ```text
//! cargo run --release --example data_parallel -- a9a.gz 1
//! cargo run --release --example data_parallel -- a9a.gz 4
//! ```

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
    let mut arguments = std::env::args().skip(1);
    let (Some(train), Some(Ok(n_workers))) =
        (arguments.next(), arguments.next().map(|count| count.parse()))
    else {
        eprintln!("usage: data_parallel TRAIN WORKERS");
        return ExitCode::from(2);
    };
    match run(&train, n_workers) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("data_parallel: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(train: &str, n_workers: usize) -> Result<()> {
    let data = libsvm::read(train, IndexBase::Detect)?;
    let mut model = Machine::new(dims! { d: data.n_features() }, Seed(42))?;
    let rule = AdaGrad { learning_rate: 0.05, ..AdaGrad::default() };
    Trainer::new(rule)
        .batch_size(1024)
        .epochs(5)
        .metric(LogLoss)
        .evaluation(&data)
        .fit_on_threads(&mut model, &data, n_workers)?;
    // A number that any change of any bit changes.
    let values = model.v.values().iter().chain(model.w.values());
    let mixed = values.fold(0u64, |sum, v| sum.rotate_left(5) ^ u64::from(v.to_bits()));
    println!("all bits of the model: {mixed:016x}");
    Ok(())
}
