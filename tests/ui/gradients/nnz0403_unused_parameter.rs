use nnz::prelude::*;

graph! {
    pub model UnusedParameter {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        loss squared_error(dot(x, w), y);
    }
}

fn main() {}
