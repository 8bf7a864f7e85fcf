//! Logistic regression.

use nnz::prelude::*;
use samples::{bags, clicks};

graph! {
    /// The probability of a click.
    pub model Logistic {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder().input("x", bags(1)).label("y", clicks()).build()?;
    let mut model = Logistic::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(AdaGrad::default()).fit(&mut model, &data)?;
    Trainer::new(Ftrl::default()).fit(&mut model, &data)?;
    Ok(())
}
