use nnz::prelude::*;

graph! {
    pub model UnknownOperator {
        input x: csr[n, d];
        param w: row_sparse[d, 1] = Zeros;
        let scores = dto(x, w);
        let squashed = sigmiod(scores);
        output squashed;
    }
}

fn main() {}
