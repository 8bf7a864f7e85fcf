use nnz::prelude::*;

graph! {
    pub model LabelOfAnotherShape {
        input x: csr[n, d];
        label y: dense[n];
        param w: row_sparse[d, 1] = Zeros;
        loss squared_error(dot(x, w), y);
    }
}

fn main() {}
