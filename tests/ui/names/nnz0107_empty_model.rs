use nnz::prelude::*;

graph! {
    pub model Empty {
        input x: csr[n, d];
        let y = tanh(x);
    }

    pub model Nothing {}
}

fn main() {}
