use nnz::prelude::*;

graph! {
    pub model Largest {
        input x: csr[n, 5];
        output best = topk(x, k = 3);
    }
}

fn main() {}
