//! An annotation of a second name, and of an output, is checked like any other.
use nnz::prelude::*;

graph! {
    pub model SecondName {
        input x: dense[n, d];
        let y = exp(x);
        let z: csr[n, d] = y;
        output y: row_sparse[n, d];
        output w: csr[n, d] = tanh(x);
    }
}

fn main() {}
