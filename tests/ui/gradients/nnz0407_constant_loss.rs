#![deny(warnings)]
use nnz::prelude::*;

graph! {
    pub model ConstantLoss {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss squared_error(score, y);
        loss 0.0 * mean(square(score));
    }
}

fn main() {}
