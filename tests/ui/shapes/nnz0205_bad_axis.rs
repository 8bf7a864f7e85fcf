use nnz::prelude::*;

graph! {
    pub model BadAxis {
        input x: csr[n, d];
        output total = sum(x, axis = 2);
    }
}

fn main() {}
