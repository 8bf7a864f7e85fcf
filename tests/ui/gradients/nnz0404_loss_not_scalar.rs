use nnz::prelude::*;

graph! {
    pub model LossNotScalar {
        input x: csr[n, d];
        param w: row_sparse[d, 1] = Zeros;
        loss square(dot(x, w));
    }

    /// Told where it is said to be a loss.
    pub model LossOfAValue {
        input x: csr[n, d];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        output score;
        loss score;
    }
}

fn main() {}
