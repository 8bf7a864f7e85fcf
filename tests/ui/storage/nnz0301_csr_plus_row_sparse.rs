use nnz::prelude::*;

graph! {
    pub model CsrPlusRowSparse {
        input b: csr[n, d];
        input c: row_sparse[n, d];
        output total = b + c;
    }
}

fn main() {}
