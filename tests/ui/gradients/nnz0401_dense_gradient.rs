use nnz::prelude::*;

graph! {
    pub model DenseGradient {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let penalty = sum(square(w));
        loss squared_error(dot(x, w), y);
        loss 0.5 * penalty;
    }
}

fn main() {}
