use nnz::prelude::*;

graph! {
    operator nothing(x) { gradient x = grad; }
    operator none() { each = crate::f; }
    operator both(x) { each = crate::f; rule dense -> dense = crate::g; }
    operator two(x, y) { each = crate::f; }
    operator whole(x) { rule dense -> dense = crate::g; at_zero = 0; }
    operator twice(x) { each = crate::f; each = crate::f; }
    operator misspelt(x) { ruel dense -> dense = crate::g; }
    operator derived(x) { each = crate::f; derivative = crate::f; gradient x = grad; }

    pub model M {
        input x: dense[n, d];
        output y = tanh(x);
    }
}

fn main() {}
