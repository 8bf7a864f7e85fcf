use nnz::prelude::*;

graph! {
    pub model UnknownStorage {
        input x: row_sprase[n, d];
        input y: csc[n, d];
        output x;
    }
}

fn main() {}
