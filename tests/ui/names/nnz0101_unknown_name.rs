use nnz::prelude::*;

graph! {
    pub model UnknownName {
        input features: csr[n, d];
        param weight: row_sparse[d, 1] = Zeros;
        let scores = dot(features, wieght);
        output scores;
    }
}

fn main() {}
