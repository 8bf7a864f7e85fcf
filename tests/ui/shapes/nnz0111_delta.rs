use nnz::prelude::*;

graph! {
    pub model Delta {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let p = dot(x, w);
        loss huber(p, y, delta = 0);
        output p;
    }
}

fn main() {}
