use nnz::prelude::*;

graph! {
    pub model ReservedName {
        input x: csr[n, d];
        input type: dense[n, 1];
        output y = tanh(x);
    }
}

fn main() {}
