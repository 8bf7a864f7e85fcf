//! A factorization machine of the second order: two classes by features and pairs of them.

use nnz::prelude::*;

graph! {
    /// A factorization machine of the second order; the output is the probability of the positive
    /// class.
    pub model FactorizationMachine {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, k] = Normal { mean: 0.0, std: 0.01 };
        param b: dense[1] = Zeros;

        let score = dot(x, w) + pairwise_interaction(x, v) + b;

        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// [`FactorizationMachine`] with a weight for each sample.
    pub model WeightedFactorizationMachine {
        input x: csr[n, d];
        label y: dense[n, 1];
        label weight: dense[n];

        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, k] = Normal { mean: 0.0, std: 0.01 };
        param b: dense[1] = Zeros;

        let score = dot(x, w) + pairwise_interaction(x, v) + b;

        loss logistic(score, y, weight = weight);
        output probability = sigmoid(score);
    }
}
