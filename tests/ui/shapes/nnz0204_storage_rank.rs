use nnz::prelude::*;

graph! {
    pub model StorageRank {
        input x: csr[n];
        input y: row_sparse[];
        output x;
    }
}

graph! {
    pub model NoRows {
        input s: dense[];
        output o = row_sparse(s) * s;
    }
}

fn main() {}
