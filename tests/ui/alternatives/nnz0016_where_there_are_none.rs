use nnz::prelude::*;

graph! {
    pub model M {
        input x: csr | dense | csr[n, d];
        label y: dense[n, 1];
        param w: dense | row_sparse[d, 1] = Zeros;
        let s: dense | csr[n, 1] = dot(x, w);
        loss squared_error(s, y);
    }
}

fn main() {}
