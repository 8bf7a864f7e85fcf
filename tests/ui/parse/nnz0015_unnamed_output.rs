use nnz::prelude::*;

graph! {
    pub model UnnamedOutput {
        input x: csr[n, d];
        output tanh(x);
    }
}

fn main() {}
