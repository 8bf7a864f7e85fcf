//! A declaration that does not parse loses only itself: `pred` stays known.
use nnz::prelude::*;

graph! {
    pub model Broken {
        input x: csr[n, d];
        param w: row_sparse[d, 1] = Zeros;
        let pred = dot(x, w) +;
        output pred;
        output other = missing;
    }
}

fn main() {}
