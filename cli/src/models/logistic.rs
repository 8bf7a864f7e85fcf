//! Logistic regression: two classes.

use nnz::prelude::*;

graph! {
    /// Logistic regression; the output is the probability of the positive class.
    pub model LogisticRegression {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;

        let score = dot(x, w) + b;

        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// [`LogisticRegression`] with a weight for each sample.
    pub model WeightedLogisticRegression {
        input x: csr[n, d];
        label y: dense[n, 1];
        label weight: dense[n];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;

        let score = dot(x, w) + b;

        loss logistic(score, y, weight = weight);
        output probability = sigmoid(score);
    }
}
