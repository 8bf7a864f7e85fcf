//! Matrix factorization with biases: ratings of items by users.

use nnz::prelude::*;

graph! {
    /// Ratings as inner products of users' and items' factors, and biases; of any range.
    pub model MatrixFactorization {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n];
        param p: row_sparse[users, k] = Normal { mean: 0.0, std: 0.1 };
        param q: row_sparse[items, k] = Normal { mean: 0.0, std: 0.1 };
        param of_user: row_sparse[users] = Zeros;
        param of_item: row_sparse[items] = Zeros;
        param mean: dense[1] = Zeros;
        let prediction = sum(take(p, user) * take(q, item), axis = 1)
            + take(of_user, user) + take(of_item, item) + mean;
        loss squared_error(prediction, rating);
        output prediction;
    }

    /// [`MatrixFactorization`] with a weight for each sample.
    pub model WeightedMatrixFactorization {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n];
        label weight: dense[n];
        param p: row_sparse[users, k] = Normal { mean: 0.0, std: 0.1 };
        param q: row_sparse[items, k] = Normal { mean: 0.0, std: 0.1 };
        param of_user: row_sparse[users] = Zeros;
        param of_item: row_sparse[items] = Zeros;
        param mean: dense[1] = Zeros;
        let prediction = sum(take(p, user) * take(q, item), axis = 1)
            + take(of_user, user) + take(of_item, item) + mean;
        loss squared_error(prediction, rating, weight = weight);
        output prediction;
    }
}
