use nnz::prelude::*;

graph! {
    pub model Reshape {
        input x: dense[n, 6];
        output y = reshape(x, shape = [0, 2, 4]);
    }
}

fn main() {}
