use nnz::prelude::*;

graph! {
    operator table(x, v) { rule csr row_sparse -> dense = crate::f; shape [n, d] [d, k] -> [n, k]; reads w by columns(x); }
    operator names(x, v) { rule csr row_sparse -> dense = crate::f; shape [n, d] [d, k] -> [n, k]; reads v by columns(y); }
    operator words(x, v) { rule csr row_sparse -> dense = crate::f; shape [n, d] [d, k] -> [n, k]; reads v by rows(x); }
    operator dense_table(x, v) { rule csr dense -> dense = crate::f; shape [n, d] [d, k] -> [n, k]; reads v by columns(x); }
    operator ids(x, v) { rule csr row_sparse -> dense = crate::f; shape [n, d] [d, k] -> [n, k]; reads v by ids(x); }
    operator height(x, v) { rule csr row_sparse -> dense = crate::f; shape [n, c] [d, k] -> [n, k]; reads v by columns(x); }
    operator result(x, v) { rule csr row_sparse -> dense = crate::f; shape [n, d] [d, k] -> [n, k]; stores by columns(x); }
    operator twice(x, v) { rule csr row_sparse -> dense = crate::f; shape [n, d] [d, k] -> [n, k]; reads v by columns(x); reads v by columns(x); }
    operator element(x) { each = crate::f; stores by columns(x); }

    pub model M {
        input x: dense[n, d];
        output y = tanh(x);
    }
}

fn main() {}
