use nnz::prelude::*;

graph! {
    pub model UnknownModifier {
        input x: csr[n, d];
        param(fixed) w: row_sparse[d, 1] = Zeros;
        output score = dot(x, w);
    }
}

fn main() {}
