use nnz::prelude::*;

graph! {
    operator pattern(x) { rule csc -> dense = crate::f; }
    operator result(x) { rule dense -> scalar = crate::f; }
    operator arrow(x) { rule dense = crate::f; }
    operator count(x, y) { rule dense -> dense = crate::f; }

    // What is wrong with an operator is said there, and not where it is used.
    pub model M {
        input x: dense[n, d];
        output y = pattern(x);
    }
}

fn main() {}
