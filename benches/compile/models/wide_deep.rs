//! Wide & deep.

use nnz::prelude::*;
use samples::{bags, clicks};

graph! {
    /// Two layers over bags, beside a linear model.
    pub model WideDeep {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, 16] = Normal { mean: 0.0, std: 0.05 };
        param h: dense[16, 32] = Normal { mean: 0.0, std: 0.2 };
        param b: dense[32] = Zeros;
        param g: dense[32, 1] = Normal { mean: 0.0, std: 0.2 };
        let hidden = relu(dot(embedding_bag(x, t), h) + b);
        let score = dot(x, w) + dot(hidden, g);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder().input("x", bags(1)).label("y", clicks()).build()?;
    let mut model = WideDeep::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(AdaGrad::default()).fit(&mut model, &data)?;
    Trainer::new(Adam::default()).fit(&mut model, &data)?;
    Ok(())
}
