use nnz::prelude::*;

graph! {
    pub model UnknownElement {
        input x: csr<float>[n, d];
        output x;
    }
}

fn main() {}
