//! Quantile regression: the number that a given share of labels is below.

use nnz::prelude::*;

graph! {
    /// The pinball loss of the error e = label - prediction: quantile · e where e ≥ 0, and
    /// (quantile - 1) · e below.
    pub model QuantileRegression {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        param(frozen) quantile: dense[1] = Constant(0.5);

        let prediction = dot(x, w) + b;
        let error = y - prediction;

        loss mean(maximum(quantile * error, (quantile - 1.0) * error));
        output prediction;
    }

    /// [`QuantileRegression`] with a weight for each sample.
    pub model WeightedQuantileRegression {
        input x: csr[n, d];
        label y: dense[n, 1];
        label weight: dense[n];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        param(frozen) quantile: dense[1] = Constant(0.5);

        let prediction = dot(x, w) + b;
        let error = y - prediction;

        let pinball = maximum(quantile * error, (quantile - 1.0) * error);

        loss mean(sum(pinball, axis = 1) * weight);
        output prediction;
    }
}
