use nnz::prelude::*;

graph! {
    pub model NumbersForIds {
        input user: dense[n];
        param table: row_sparse[users, 8] = Normal { mean: 0.0, std: 0.01 };
        output rows = embedding(user, table);
    }
}

fn main() {}
