use nnz::prelude::*;

graph! {
    pub model WrongRank {
        input x: csr[n, d];
        param w: dense[d, 1, 1] = Zeros;
        output pred = dot(x, w);
    }
}

fn main() {}
