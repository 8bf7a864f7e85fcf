//! Bayesian personalised ranking: one table read twice.

use nnz::prelude::*;
use samples::{clicks, one_id};

graph! {
    /// Which of two items a user prefers.
    pub model Preferences {
        input user: dense<u32>[n];
        input better: dense<u32>[n];
        input worse: dense<u32>[n];
        label y: dense[n, 1];
        param p: row_sparse[users, 16] = Normal { mean: 0.0, std: 0.1 };
        param q: row_sparse[items, 16] = Normal { mean: 0.0, std: 0.1 };
        let of_user = embedding(user, p);
        let score = sum(of_user * embedding(better, q), axis = 1, keepdims = true)
            - sum(of_user * embedding(worse, q), axis = 1, keepdims = true);
        loss logistic(score, y);
        output score;
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder()
        .input("user", one_id(50))
        .input("better", one_id(20))
        .input("worse", one_id(19))
        .label("y", clicks())
        .build()?;
    let mut model = Preferences::new(dims! { users: 50, items: 20 }, Seed(42))?;
    Trainer::new(AdaGrad::default()).fit(&mut model, &data)?;
    Trainer::new(Sgd::default()).fit(&mut model, &data)?;
    Ok(())
}
