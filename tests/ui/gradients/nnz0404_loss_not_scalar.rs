use nnz::prelude::*;

graph! {
    pub model LossNotScalar {
        input x: csr[n, d];
        param w: row_sparse[d, 1] = Zeros;
        loss square(dot(x, w));
    }
}

fn main() {}
