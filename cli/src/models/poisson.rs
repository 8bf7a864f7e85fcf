//! Poisson regression of counts.

use nnz::prelude::*;

graph! {
    /// Poisson regression; the output is the expected count.
    pub model PoissonRegression {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;

        let score = dot(x, w) + b;

        loss poisson(score, y);
        output count = exp(score);
    }

    /// [`PoissonRegression`] with a weight for each sample.
    pub model WeightedPoissonRegression {
        input x: csr[n, d];
        label y: dense[n, 1];
        label weight: dense[n];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;

        let score = dot(x, w) + b;

        loss poisson(score, y, weight = weight);
        output count = exp(score);
    }
}
