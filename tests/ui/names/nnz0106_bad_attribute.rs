use nnz::prelude::*;

graph! {
    pub model BadAttribute {
        input x: csr[n, d];
        output y = sum(x, axis = rows);
    }
}

fn main() {}
