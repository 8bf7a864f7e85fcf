use nnz::prelude::*;

graph! {
    /// Uses of what cannot be a name are not told again.
    block scaled(fn, by) {
        let match = fn * by;
        match + fn
    }

    pub model UsedAsAName {
        input type: csr[n, d];
        param w: row_sparse[d, 1] = Zeros;
        let yield = dot(type, w);
        output y = 2 * (yield + scaled(yield, 2));
    }
}

fn main() {}
