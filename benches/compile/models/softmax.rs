//! Multinomial logistic regression.

use nnz::prelude::*;
use samples::{bags, one_id};

graph! {
    /// The probabilities of ten classes.
    pub model Softmax {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, 10] = Zeros;
        param b: dense[10] = Zeros;
        let scores = dot(x, w) + b;
        loss softmax_cross_entropy(scores, y);
        output probabilities = softmax(scores);
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder().input("x", bags(1)).label("y", one_id(10)).build()?;
    let mut model = Softmax::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(Sgd::default()).fit(&mut model, &data)?;
    Trainer::new(Adam::default()).fit(&mut model, &data)?;
    Ok(())
}
