use nnz::prelude::*;

graph! {
    pub model NoGradient {
        input x: csr[n, d];
        input t: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param scale: dense[1] = Ones;
        loss squared_error(dot(x, w), t * scale);
    }
}

fn main() {}
