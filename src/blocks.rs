//! Blocks that models are often made of, to be named in a [`graph!`](crate::graph):
//! `use nnz::blocks::linear;`.
//!
//! A block is written out where it is used, and inferred there: what storage its operands have, the
//! model says. Other crates offer blocks of their own in the same way, with `pub block`.

sparse_macros::graph! {
    /// A linear layer, `x·w + b`. A csr `x` reads the rows of `w` that it has columns for.
    ///
    /// ```
    /// use nnz::prelude::*;
    ///
    /// graph! {
    ///     use nnz::blocks::linear;
    ///
    ///     pub model Logistic {
    ///         input x: csr[n, d];
    ///         label y: dense[n, 1];
    ///         param w: row_sparse[d, 1] = Zeros;
    ///         param b: dense[1] = Zeros;
    ///         loss logistic(linear(x, w, b), y);
    ///     }
    /// }
    /// ```
    pub block linear(x, w, b = 0.0) { dot(x, w) + b }

    /// A factorization machine of the second order: a linear layer, and for each pair of features
    /// of a row the product of their rows of `v` (Rendle, 2010). O(nnz · k) for the k columns of
    /// `v`.
    ///
    /// ```
    /// use nnz::prelude::*;
    ///
    /// graph! {
    ///     pub model Rating {
    ///         input x: csr[n, d];
    ///         label y: dense[n, 1];
    ///         param w: row_sparse[d, 1] = Zeros;
    ///         param v: row_sparse[d, 8] = Normal { mean: 0.0, std: 0.1 };
    ///         let rating = nnz::blocks::factorization_machine(x, w, v);
    ///         loss squared_error(rating, y);
    ///         output rating;
    ///     }
    /// }
    /// ```
    pub block factorization_machine(x, w, v, b = 0.0) {
        linear(x, w, b) + pairwise_interaction(x, v)
    }
}
