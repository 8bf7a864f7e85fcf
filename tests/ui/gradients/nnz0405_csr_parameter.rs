use nnz::prelude::*;

graph! {
    pub model CsrParameter {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: csr[d, 1] = Zeros;
        let pred = dot(x, w);
        loss squared_error(pred, y);
        output pred;
    }
}

fn main() {}
