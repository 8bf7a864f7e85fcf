//! Least squares: numbers.

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

    /// [`Linear`] with a weight for each sample.
    pub model WeightedLinear {
        input x: csr[n, d];
        label y: dense[n, 1];
        label weight: dense[n];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let prediction = dot(x, w) + b;
        loss squared_error(prediction, y, weight = weight);
        output prediction;
    }
}
