use nnz::prelude::*;

graph! {
    pub model DuplicateName {
        input x: dense[n, d];
        let y = tanh(x);
        let y = exp(x);
        output y;
    }

    /// Of two fields of one name one is emitted.
    pub model DuplicateFields {
        input x: csr[n, d];
        input x: dense[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param w: dense[1] = Zeros;
        loss squared_error(dot(x, w), y);
    }
}

fn main() {}
