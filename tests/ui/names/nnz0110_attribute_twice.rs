use nnz::prelude::*;

graph! {
    pub model AttributeTwice {
        input x: dense[n, d];
        output y = sum(x, axis = 0, axis = 1);
    }
}

fn main() {}
