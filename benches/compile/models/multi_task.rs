//! Two tasks that share a table.

use nnz::prelude::*;
use samples::{bags, clicks, numbers};

graph! {
    /// A number and a class of the same samples.
    pub model MultiTask {
        input x: csr[n, d];
        label amount: dense[n, 1];
        label event: dense[n, 1];
        param t: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.1 };
        param u: dense[4, 1] = Normal { mean: 0.0, std: 0.5 };
        param v: dense[4, 1] = Normal { mean: 0.0, std: 0.5 };
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

fn main() -> Result<()> {
    let data = Dataset::builder()
        .input("x", bags(1))
        .label("amount", numbers(1))
        .label("event", clicks())
        .build()?;
    let mut model = MultiTask::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(AdaGrad::default()).fit(&mut model, &data)?;
    Trainer::new(Sgd::default()).fit(&mut model, &data)?;
    Ok(())
}
