//! Two csr inputs with a table each.

use nnz::prelude::*;
use samples::{bags, clicks};

graph! {
    /// Words of a query and of a document.
    pub model TwoInputs {
        input left: csr[n, d];
        input right: csr[n, d];
        label y: dense[n, 1];
        param v: row_sparse[d, 1] = Zeros;
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(left, v) + dot(right, w) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder()
        .input("left", bags(1))
        .input("right", bags(2))
        .label("y", clicks())
        .build()?;
    let mut model = TwoInputs::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(Ftrl::default()).fit(&mut model, &data)?;
    Trainer::new(Sgd::default()).fit(&mut model, &data)?;
    Ok(())
}
