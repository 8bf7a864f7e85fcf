use nnz::prelude::*;

graph! {
    #[derive(Debug)]
    pub model Attributes {
        #[cfg(feature = "wide")]
        input x: csr[n, d];
        /// Documentation is no error.
        #[deprecated]
        param w: row_sparse[d, 1] = Zeros;
        #[allow(unused)]
        let pred = dot(x, w) + #[cfg(feature = "bias")] twice(x);
        #[rustfmt::skip]
        output pred;
    }

    #[inline]
    block twice(x) {
        /// Nor is it here.
        let y = x;
        #[cfg_attr(test, doc = "a line")]
        y + y
    }
}

fn main() {}
