//! Elements of 16 bits without the feature `half`.
use nnz::prelude::*;

graph! {
    /// By the option.
    pub model ByOption {
        dtype = bf16;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        loss logistic(dot(x, w), y);
    }

    /// By the type of a value.
    pub model ByType {
        input x: csr<f16>[n, d];
        output doubled = x * 2;
    }
}

fn main() {}
