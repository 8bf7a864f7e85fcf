//! A model whose step is kernels one by one.

use nnz::prelude::*;
use samples::{bags, clicks};

graph! {
    /// Logistic regression with `fuse = off`.
    pub model Kernels {
        fuse = off;
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
    let mut model = Kernels::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(Sgd::default()).fit(&mut model, &data)?;
    Trainer::new(AdaGrad::default()).fit(&mut model, &data)?;
    Ok(())
}
