use nnz::prelude::*;

graph! {
    pub model IdsAndNumbers {
        input x: csr[n, d];
        label y: dense[n];
        param w: row_sparse[d, 5] = Zeros;
        loss softmax_cross_entropy(dot(x, w), y);
    }
}

fn main() {}
