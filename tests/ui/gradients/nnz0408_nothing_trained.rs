#![deny(warnings)]
use nnz::prelude::*;

graph! {
    pub model NothingTrained {
        input x: csr[n, d];
        label y: dense[n, 1];
        param(frozen) w: row_sparse[d, 1] = Zeros;
        loss squared_error(dot(x, w), y);
    }
}

fn main() {}
