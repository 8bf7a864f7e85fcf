use nnz::prelude::*;

graph! {
    pub model M {
        input x: csr | dense[n, d];
        output y = tanh(x);
    }
}

fn score(_: M<RowSparse>) {}

fn main() {}
