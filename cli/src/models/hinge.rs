//! A linear support vector machine: two classes by the hinge loss.

use nnz::prelude::*;

graph! {
    /// A linear support vector machine; the output is the score, positive for the positive class.
    pub model LinearSvm {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;

        let score = dot(x, w) + b;

        loss hinge(score, y);
        output score;
    }

    /// [`LinearSvm`] with a weight for each sample.
    pub model WeightedLinearSvm {
        input x: csr[n, d];
        label y: dense[n, 1];
        label weight: dense[n];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;

        let score = dot(x, w) + b;

        loss hinge(score, y, weight = weight);
        output score;
    }
}
