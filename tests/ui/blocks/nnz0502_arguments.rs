use nnz::prelude::*;

graph! {
    block linear(x, w, b = 0.0) { dot(x, w) + b }
    block reduced(x, axis) { sum(x, axis = axis) }
    block wrong(x, y = x) { x + y }

    pub model Uses {
        input x: csr[n, d];
        param(frozen) w: row_sparse[d, 1] = Zeros;
        output missing = linear(x);
        output many = linear(x, w, 1.0, 2.0);
        output misspelt = linear(x, w, bb = 1.0);
        output twice = linear(x, w, w = w);
        output none = x.reduced();
    }
}

fn main() {}
