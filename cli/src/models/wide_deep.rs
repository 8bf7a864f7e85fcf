//! A linear model beside embeddings through two dense layers: two classes.

use nnz::prelude::*;

graph! {
    /// A wide part and a deep one; the output is the probability of the positive class.
    pub model WideDeep {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, 8] = Normal { mean: 0.0, std: 0.05 };
        param h: dense[8, 32] = Normal { mean: 0.0, std: 0.2 };
        param a: dense[32] = Zeros;
        param g: dense[32, 1] = Normal { mean: 0.0, std: 0.2 };
        param b: dense[1] = Zeros;

        let hidden = relu(dot(embedding_bag(x, t), h) + a);
        let score = dot(x, w) + dot(hidden, g) + b;

        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}
