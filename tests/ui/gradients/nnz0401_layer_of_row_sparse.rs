use nnz::prelude::*;

graph! {
    pub model Layer {
        input x: csr[n, d];
        label y: dense[n, h];
        param w: row_sparse[h, d] = Zeros;
        let p = fully_connected(x, w);
        loss squared_error(p, y);
        output p;
    }
}

fn main() {}
