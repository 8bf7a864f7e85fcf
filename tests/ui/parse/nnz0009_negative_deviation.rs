use nnz::prelude::*;

graph! {
    pub model NegativeDeviation {
        input x: csr[n, d];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: -0.01 };
        output score = dot(x, w);
    }
}

fn main() {}
