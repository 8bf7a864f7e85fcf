use nnz::prelude::*;

graph! {
    pub model Scores {
        input x: csr[n, d];
        param w: dense[d] = Zeros;
        output pred = dot(x, w, transpose_rhs = true);
    }
}

fn main() {}
