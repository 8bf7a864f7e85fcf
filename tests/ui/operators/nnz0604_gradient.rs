use nnz::prelude::*;

graph! {
    block doubled(x) { x + x }

    operator name(x) { each = crate::f; gradient x = gard * x; }
    operator callee(x) { each = crate::f; gradient x = grad * tahn(x); }
    operator block(x) { each = crate::f; gradient x = doubled(grad); }
    operator operand(x) { each = crate::f; gradient y = grad; }
    operator count(x) { each = crate::f; gradient x = dot(grad); }
    operator attribute(x) { each = crate::f; gradient x = sum(grad, axes = 1); }

    pub model M {
        input x: dense[n, d];
        output y = tanh(x);
    }
}

fn main() {}
