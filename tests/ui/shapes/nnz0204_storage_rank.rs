use nnz::prelude::*;

graph! {
    pub model StorageRank {
        input x: csr[n];
        input y: row_sparse[];
        output x;
    }
}

fn main() {}
