use nnz::prelude::*;

graph! {
    operator letter(x) { rule dense -> dense = crate::f; shape [n, k] -> [m]; }
    operator count(x, y) { rule dense dense -> dense = crate::f; shape [n, k] -> [n]; }
    operator word(x) { rule dense -> dense = crate::f; shape like -> [n]; }

    pub model M {
        input x: dense[n, d];
        output y = tanh(x);
    }
}

fn main() {}
