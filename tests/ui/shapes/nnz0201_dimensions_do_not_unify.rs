use nnz::prelude::*;

graph! {
    pub model Mismatch {
        input x: csr[n, d];
        param w: row_sparse[e, 1] = Zeros;
        param v: row_sparse[100, 1] = Zeros;
        let a = dot(x, w);
        let b = dot(x, v);
        output a;
        output b;
    }
}

fn main() {}
