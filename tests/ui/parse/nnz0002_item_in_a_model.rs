use nnz::prelude::*;

graph! {
    pub model Nested {
        block twice(x) { 2 * x }
        input x: dense[n, d];
        output y = twice(x);
    }
}

fn main() {}
