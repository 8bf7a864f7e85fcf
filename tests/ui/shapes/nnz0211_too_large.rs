use nnz::prelude::*;

graph! {
    pub model TooLarge {
        input x: csr[n, 8589934592];
        param w: row_sparse[8589934592, 4294967296] = Zeros;
        output score = dot(x, w);
    }
}

fn main() {}
