use nnz::prelude::*;

graph! {
    pub model NotOnRequest {
        input x: csr[n, d];
        input g: dense[n, 2];
        output y = dot(x, g, transpose_lhs = true, out = csr);
    }
}

fn main() {}
