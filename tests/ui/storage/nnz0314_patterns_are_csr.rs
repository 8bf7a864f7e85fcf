use nnz::prelude::*;

graph! {
    pub model PatternsAreCsr {
        input x: dense<unit>[n, d];
        input z: csr | dense<unit>[n, d];
        param w: csr<unit>[d, 2] = Zeros;
        let s = dot(x, w) + dot(z, w);
        output s;
    }
}

fn main() {}
