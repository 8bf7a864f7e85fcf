//! A linear support vector machine with the squared hinge loss: two classes.

use nnz::prelude::*;

graph! {
    /// A linear support vector machine with the squared hinge loss; the output is the score,
    /// positive for the positive class.
    pub model SquaredHingeSvm {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;

        let score = dot(x, w) + b;

        loss squared_hinge(score, y);
        output score;
    }

    /// [`SquaredHingeSvm`] with a weight for each sample.
    pub model WeightedSquaredHingeSvm {
        input x: csr[n, d];
        label y: dense[n, 1];
        label weight: dense[n];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;

        let score = dot(x, w) + b;

        loss squared_hinge(score, y, weight = weight);
        output score;
    }
}
