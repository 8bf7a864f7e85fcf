//! Poisson regression.

use nnz::prelude::*;
use samples::{bags, clicks};

graph! {
    /// Counts of events.
    pub model Poisson {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss poisson(score, y);
        output count = exp(score);
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder().input("x", bags(1)).label("y", clicks()).build()?;
    let mut model = Poisson::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(Sgd::default()).fit(&mut model, &data)?;
    Trainer::new(AdaGrad::default()).fit(&mut model, &data)?;
    Ok(())
}
