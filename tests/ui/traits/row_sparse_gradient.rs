//! Generic code demands a row_sparse gradient by a trait bound.
use nnz::model::RowSparseGradient;
use nnz::prelude::*;

graph! {
    pub model Linear {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        loss squared_error(dot(x, w) + b, y);
    }
}

fn shard(_: &impl RowSparseGradient) {}

fn main() {
    let model = Linear::new(dims! { d: 3 }, Seed(1)).unwrap();
    shard(&model.w);
    shard(&model.b);
}
