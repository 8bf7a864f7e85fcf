//! Two csr inputs that share a table.

use nnz::prelude::*;
use samples::{bags, clicks};

graph! {
    /// How near two bags of words are after one layer.
    pub model Towers {
        input left: csr[n, d];
        input right: csr[n, d];
        label y: dense[n, 1];
        param t: row_sparse[d, 8] = Normal { mean: 0.0, std: 0.1 };
        param h: dense[8, 8] = Normal { mean: 0.0, std: 0.3 };
        let a = tanh(dot(embedding_bag(left, t, mean = true), h));
        let b = tanh(dot(embedding_bag(right, t, mean = true), h));
        let score = sum(a * b, axis = 1, keepdims = true);
        loss logistic(score, y);
        output score;
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder()
        .input("left", bags(1))
        .input("right", bags(2))
        .label("y", clicks())
        .build()?;
    let mut model = Towers::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(Adam::default()).fit(&mut model, &data)?;
    Trainer::new(Sgd::default()).fit(&mut model, &data)?;
    Ok(())
}
