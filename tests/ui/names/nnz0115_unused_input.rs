#![deny(warnings)]
use nnz::prelude::*;

graph! {
    pub model UnusedInput {
        input x: csr[n, d];
        input age: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        output score = dot(x, w);
    }
}

fn main() {}
