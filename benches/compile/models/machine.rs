//! A factorization machine.

use nnz::prelude::*;
use samples::{bags, clicks};

graph! {
    /// Of the second order, with eight factors.
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

fn main() -> Result<()> {
    let data = Dataset::builder().input("x", bags(1)).label("y", clicks()).build()?;
    let mut model = Machine::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(AdaGrad::default()).fit(&mut model, &data)?;
    Trainer::new(Adam::default()).fit(&mut model, &data)?;
    Ok(())
}
