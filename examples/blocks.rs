//! Blocks: parts of models with names, of this file and of the library.
//!
//! ```sh
//! cargo run --release --example blocks
//! ```

use nnz::data::synthetic;
use nnz::prelude::*;

graph! {
    use nnz::blocks::{factorization_machine, linear};

    /// A hidden layer.
    block layer(x, w, b) { relu(linear(x, w, b)) }

    /// A factorization machine and a small network, which read the same features.
    pub model Clicks {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 8] = Normal { mean: 0.0, std: 0.05 };
        param e: row_sparse[d, 16] = Normal { mean: 0.0, std: 0.05 };
        param b1: dense[16] = Zeros;
        param w2: dense[16, 8] = Normal { mean: 0.0, std: 0.3 };
        param b2: dense[8] = Zeros;
        param w3: dense[8, 1] = Normal { mean: 0.0, std: 0.3 };
        param b3: dense[1] = Zeros;

        // The first layer reads rows of `e` that the csr has columns for; the second is dense.
        let hidden = layer(layer(x, e, b1), w2, b2);
        let score = factorization_machine(x, w, v) + linear(hidden, w3, b3);

        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> Result<()> {
    let data = synthetic::click_log(4000, 5000, 10, 1)?;
    let (train, test) = data.split(0.8, 2)?;
    let mut model = Clicks::new(dims! { d: 5000 }, Seed(3))?;
    println!("{}", Clicks::PLAN);
    let rule = Sgd { learning_rate: 0.05, momentum: 0.9, ..Sgd::default() };
    Trainer::new(rule)
        .batch_size(16)
        .epochs(5)
        .metric(LogLoss)
        .metric(Auc)
        .evaluation(&test)
        .fit(&mut model, &train)?;
    Ok(())
}
