//! Matrix factorization with biases.

use nnz::prelude::*;
use samples::{numbers, one_id};

graph! {
    /// A rating by factors and biases of its user and its item.
    pub model Factors {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n, 1];
        param p: row_sparse[users, 16] = Normal { mean: 0.0, std: 0.1 };
        param q: row_sparse[items, 16] = Normal { mean: 0.0, std: 0.1 };
        param of_user: row_sparse[users, 1] = Zeros;
        param of_item: row_sparse[items, 1] = Zeros;
        let product = sum(take(p, user) * take(q, item), axis = 1, keepdims = true);
        let score = product + take(of_user, user) + take(of_item, item);
        loss squared_error(score, rating);
        output score;
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder()
        .input("user", one_id(50))
        .input("item", one_id(20))
        .label("rating", numbers(1))
        .build()?;
    let mut model = Factors::new(dims! { users: 50, items: 20 }, Seed(42))?;
    Trainer::new(Sgd::default()).fit(&mut model, &data)?;
    Trainer::new(Adam::default()).fit(&mut model, &data)?;
    Ok(())
}
