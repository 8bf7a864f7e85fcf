#![deny(warnings)]
use nnz::prelude::*;

graph! {
    pub model NothingToConvert {
        input x: csr[n, d];
        param w: row_sparse[d, 1] = Zeros;
        output score = dense(dot(x, w));
    }
}

fn main() {}
