use nnz::prelude::*;

graph! {
    pub model MissingType {
        input x = csr[n, d];
        output y = tanh(x);
    }
}

fn main() {}
