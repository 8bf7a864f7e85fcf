//! Multinomial logistic regression: any number of classes.

use nnz::prelude::*;

graph! {
    /// Multinomial logistic regression; the outputs are the probabilities of the classes.
    pub model SoftmaxRegression {
        input x: csr[n, d];
        label y: dense<u32>[n];

        param w: row_sparse[d, k] = Zeros;
        param b: dense[k] = Zeros;

        let scores = dot(x, w) + b;

        loss softmax_cross_entropy(scores, y);
        output probabilities = softmax(scores);
    }

    /// [`SoftmaxRegression`] with a weight for each sample.
    pub model WeightedSoftmaxRegression {
        input x: csr[n, d];
        label y: dense<u32>[n];
        label weight: dense[n];

        param w: row_sparse[d, k] = Zeros;
        param b: dense[k] = Zeros;

        let scores = dot(x, w) + b;

        loss softmax_cross_entropy(scores, y, weight = weight);
        output probabilities = softmax(scores);
    }
}
