use nnz::prelude::*;

graph! {
    pub model AnnotatedShape {
        input x: csr[n, d];
        param w: row_sparse[d, 3] = Zeros;
        let pred: dense[n, 2] = dot(x, w);
        output pred;
    }
}

fn main() {}
