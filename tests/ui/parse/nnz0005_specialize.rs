//! `specialize` where it says nothing, and twice.
use nnz::prelude::*;

graph! {
    /// Its step is run by the engine of the library.
    pub model Bags {
        specialize = [Sgd];
        input x: csr[n, d];
        label y: dense[n, 1];
        param t: row_sparse[d, 4] = Zeros;
        param h: dense[4, 1] = Zeros;
        loss squared_error(dot(embedding_bag(x, t), h), y);
    }

    pub model Twice {
        specialize = [Sgd];
        specialize = [AdaGrad];
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        loss squared_error(dot(x, w), y);
    }
}

fn main() {}
