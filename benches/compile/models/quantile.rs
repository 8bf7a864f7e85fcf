//! A loss written by hand: the 0.9 quantile.

use nnz::prelude::*;
use samples::{bags, numbers};

graph! {
    /// Errors below count nine times.
    pub model Quantile {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        let error = y - score;
        loss mean(maximum(0.9 * error, -0.1 * error));
        output score;
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder().input("x", bags(1)).label("y", numbers(1)).build()?;
    let mut model = Quantile::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(Sgd::default()).fit(&mut model, &data)?;
    Trainer::new(Adam::default()).fit(&mut model, &data)?;
    Ok(())
}
