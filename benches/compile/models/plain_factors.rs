//! Matrix factorization without biases.

use nnz::prelude::*;
use samples::{numbers, one_id};

graph! {
    /// A rating by factors of its user and its item.
    pub model PlainFactors {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n, 1];
        param p: row_sparse[users, k] = Normal { mean: 0.0, std: 0.1 };
        param q: row_sparse[items, k] = Normal { mean: 0.0, std: 0.1 };
        let score = sum(embedding(user, p) * embedding(item, q), axis = 1, keepdims = true);
        loss squared_error(score, rating);
        output prediction = clip(score, lower = 1, upper = 5);
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder()
        .input("user", one_id(50))
        .input("item", one_id(20))
        .label("rating", numbers(1))
        .build()?;
    let mut model = PlainFactors::new(dims! { users: 50, items: 20, k: 8 }, Seed(42))?;
    Trainer::new(Sgd::default()).fit(&mut model, &data)?;
    Trainer::new(RmsProp::default()).fit(&mut model, &data)?;
    Ok(())
}
