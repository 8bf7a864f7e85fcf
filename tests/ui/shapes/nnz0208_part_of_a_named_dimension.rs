use nnz::prelude::*;

graph! {
    pub model Part {
        input x: dense[n, 4];
        output y = slice(x, begin = [1, 0], end = [3, 2]);
    }
}

fn main() {}
