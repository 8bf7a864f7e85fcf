//! Names of declarations that do not parse stay known: one error, no followers.
use nnz::prelude::*;

graph! {
    pub model BrokenInput {
        input x: csr[n, ?];
        param w: row_sparse[d, 1] = Zeros;
        let pred = dot(x, w);
        output pred;
    }

    /// Another model's errors are not this one's.
    pub model Whole {
        input x: dense[n, d];
        output y = tanh(x);
    }
}

fn main() {
    let _ = Whole::new(dims! {}, Seed(0));
}
