use nnz::prelude::*;

// Said once, at the block, whether it is used or not.
graph! {
    block linear(x, w) { dot(x, v) + tnh(x, w) }
    block total(x) { sum(x, axes = 0) }
    block dot(x, y) { x * y }
    block twice(x) { x }
    block twice(x) { x + x }

    pub model Uses {
        input x: dense[n, d];
        output a = linear(x, x) + linear(x, x);
        output b = lineer(x, x);
    }
}

fn main() {}
