//! The models of the command line: a graph each, with and without bias.

use nnz::prelude::*;

graph! {
    /// Least squares: half the squared error.
    pub model Linear {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let prediction = dot(x, w) + b;
        loss squared_error(prediction, y);
        output prediction;
    }

    /// Least squares through the origin.
    pub model LinearNoBias {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let prediction = dot(x, w);
        loss squared_error(prediction, y);
        output prediction;
    }

    /// Logistic regression; the output is the probability of the positive class.
    pub model Logistic {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// Logistic regression without bias.
    pub model LogisticNoBias {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// Multinomial logistic regression; the outputs are the probabilities of the classes.
    pub model Softmax {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, k] = Zeros;
        param b: dense[k] = Zeros;
        let scores = dot(x, w) + b;
        loss softmax_cross_entropy(scores, y);
        output probabilities = softmax(scores);
    }

    /// Multinomial logistic regression without bias.
    pub model SoftmaxNoBias {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, k] = Zeros;
        let scores = dot(x, w);
        loss softmax_cross_entropy(scores, y);
        output probabilities = softmax(scores);
    }
}
