//! A cross network over the fields of a sample.

use nnz::prelude::*;
use samples::{clicks, ids};

graph! {
    /// Two crosses of what four fields look up.
    pub model Cross {
        input fields: dense<u32>[n, 4];
        label y: dense[n, 1];
        param t: row_sparse[values, 8] = Normal { mean: 0.0, std: 0.1 };
        param w1: dense[32, 32] = Normal { mean: 0.0, std: 0.1 };
        param b1: dense[32] = Zeros;
        param w2: dense[32, 32] = Normal { mean: 0.0, std: 0.1 };
        param b2: dense[32] = Zeros;
        param g: dense[32, 1] = Normal { mean: 0.0, std: 0.1 };
        let x0 = flatten(embedding(fields, t));
        let x1 = x0 * (dot(x0, w1) + b1) + x0;
        let x2 = x0 * (dot(x1, w2) + b2) + x1;
        let score = dot(x2, g);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder().input("fields", ids(4, 50)).label("y", clicks()).build()?;
    let mut model = Cross::new(dims! { values: 50 }, Seed(42))?;
    Trainer::new(Adam::default()).fit(&mut model, &data)?;
    Trainer::new(AdaGrad::default()).fit(&mut model, &data)?;
    Ok(())
}
