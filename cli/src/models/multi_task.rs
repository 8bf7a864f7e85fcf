//! Two tasks that share a table: a number and a binary class.

use nnz::prelude::*;

graph! {
    /// A number and a class of the same rows, from what a bag of words has in common for both.
    pub model MultiTask {
        input x: csr[n, d];
        label amount: dense[n, 1];
        label event: dense[n, 1];

        param t: row_sparse[d, k] = Normal { mean: 0.0, std: 0.1 };
        param u: dense[k, 1] = Normal { mean: 0.0, std: 0.5 };
        param v: dense[k, 1] = Normal { mean: 0.0, std: 0.5 };
        param a: dense[1] = Zeros;
        param b: dense[1] = Zeros;

        let shared = dot(x, t);
        let mean = dot(shared, u) + a;
        let score = dot(shared, v) + b;

        loss squared_error(mean, amount);
        loss logistic(score, event);
        output mean;
        output probability = sigmoid(score);
    }

    /// [`MultiTask`] with a weight for each sample.
    pub model WeightedMultiTask {
        input x: csr[n, d];
        label amount: dense[n, 1];
        label event: dense[n, 1];
        label weight: dense[n];

        param t: row_sparse[d, k] = Normal { mean: 0.0, std: 0.1 };
        param u: dense[k, 1] = Normal { mean: 0.0, std: 0.5 };
        param v: dense[k, 1] = Normal { mean: 0.0, std: 0.5 };
        param a: dense[1] = Zeros;
        param b: dense[1] = Zeros;

        let shared = dot(x, t);
        let mean = dot(shared, u) + a;
        let score = dot(shared, v) + b;

        loss squared_error(mean, amount, weight = weight);
        loss logistic(score, event, weight = weight);
        output mean;
        output probability = sigmoid(score);
    }
}
