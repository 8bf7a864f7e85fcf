use nnz::prelude::*;

graph! {
    pub model UnknownInitializer {
        input x: csr[n, d];
        param w: row_sparse[d, 1] = Norml { mean: 0.0, std: 0.01 };
        output pred = dot(x, w);
    }
}

fn main() {}
