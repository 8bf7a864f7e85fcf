use nnz::prelude::*;

graph! {
    pub model M {
        input x: csr | dense | row_sparse[n, d];
        input z: csr | dense | row_sparse[n, d];
        output y = sum(x) + sum(z);
    }
}

fn main() {}
