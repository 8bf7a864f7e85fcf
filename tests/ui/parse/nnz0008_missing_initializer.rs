use nnz::prelude::*;

graph! {
    pub model NoInitializer {
        input x: csr[n, d];
        param w: row_sparse[d, 1];
        output pred = dot(x, x);
    }
}

fn main() {}
