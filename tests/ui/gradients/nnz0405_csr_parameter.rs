use nnz::prelude::*;

graph! {
    pub model CsrParameter {
        input x: csr[n, d];
        param w: csr[d, 1] = Zeros;
        output pred = dot(x, w);
    }
}

fn main() {}
