//! Least squares.

use nnz::prelude::*;
use samples::{bags, numbers};

graph! {
    /// A weight for each feature, and a bias.
    pub model Linear {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss squared_error(score, y);
        output score;
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder().input("x", bags(1)).label("y", numbers(1)).build()?;
    let mut model = Linear::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(Sgd::default()).fit(&mut model, &data)?;
    Trainer::new(Ftrl::default()).fit(&mut model, &data)?;
    Ok(())
}
