#![deny(warnings)]
use nnz::prelude::*;

graph! {
    pub model WeightsMean {
        input x: csr[n, d];
        input weight: dense[n];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        loss mean(squared_error(dot(x, w), y) * weight);
    }
}

fn main() {}
