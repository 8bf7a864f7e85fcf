//! The models that are trained.

use nnz::prelude::*;

graph! {
    /// Logistic regression on a log of clicks.
    pub model Clicks {
        input x: csr<unit>[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// A factorization machine of 16 factors.
    pub model Machine {
        input x: csr<unit>[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 16] = Normal { mean: 0.0, std: 0.05 };
        let score = dot(x, w) + pairwise_interaction(x, v);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// Two layers over bags, beside a linear model.
    pub model WideDeep {
        input x: csr<unit>[n, d];
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
