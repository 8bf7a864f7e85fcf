use nnz::prelude::*;

graph! {
    pub model Index {
        input x: dense[n, 8];
        output first = x[0];
    }
}

fn main() {}
