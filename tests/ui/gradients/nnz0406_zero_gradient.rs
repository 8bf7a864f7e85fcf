#![deny(warnings)]
use nnz::prelude::*;

graph! {
    pub model ZeroGradient {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.01 };
        loss squared_error(sign(dot(x, w)), y);
    }
}

fn main() {}
