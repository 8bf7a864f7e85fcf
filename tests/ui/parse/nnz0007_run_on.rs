use nnz::prelude::*;

graph! {
    pub model RunOn {
        input x: csr[n, d];
        let y = tanh(x)
        output y;
    }
}

fn main() {}
