//! With `fallback = warn;` the conversion is a warning at the operator; denied here to show it.
#![deny(warnings)]
use nnz::prelude::*;

graph! {
    pub model Warned {
        fallback = warn;
        input b: csr[n, d];
        input c: row_sparse[n, d];
        output total = b + c;
    }
}

fn main() {}
