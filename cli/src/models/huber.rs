//! Robust regression by Huber's loss: numbers with outliers.

use nnz::prelude::*;

graph! {
    /// Huber's loss of the error e: ½e² where |e| ≤ delta, and delta · (|e| - delta / 2) beyond.
    pub model HuberRegression {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        param(frozen) delta: dense[1] = Ones;

        let prediction = dot(x, w) + b;
        let size = abs(prediction - y);
        let inner = minimum(size, delta);

        loss mean(inner * (size - 0.5 * inner));
        output prediction;
    }

    /// [`HuberRegression`] with a weight for each sample.
    pub model WeightedHuberRegression {
        input x: csr[n, d];
        label y: dense[n, 1];
        label weight: dense[n];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        param(frozen) delta: dense[1] = Ones;

        let prediction = dot(x, w) + b;
        let size = abs(prediction - y);
        let inner = minimum(size, delta);

        loss mean(sum(inner * (size - 0.5 * inner), axis = 1) * weight);
        output prediction;
    }
}
