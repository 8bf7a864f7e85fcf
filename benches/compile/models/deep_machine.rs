//! DeepFM: a factorization machine and a network over the same vectors.

use nnz::prelude::*;
use samples::{bags, clicks};

graph! {
    use nnz::blocks::factorization_machine;

    /// Both read the same vectors.
    pub model DeepMachine {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 8] = Normal { mean: 0.0, std: 0.05 };
        param h: dense[8, 16] = Normal { mean: 0.0, std: 0.3 };
        param a: dense[16] = Zeros;
        param g: dense[16, 1] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[1] = Zeros;
        let hidden = relu(dot(embedding_bag(x, v), h) + a);
        let score = factorization_machine(x, w, v) + dot(hidden, g) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder().input("x", bags(1)).label("y", clicks()).build()?;
    let mut model = DeepMachine::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(Adam::default()).fit(&mut model, &data)?;
    Trainer::new(AdaGrad::default()).fit(&mut model, &data)?;
    Ok(())
}
