//! With `fallback = warn;` a value annotated sparse is converted back, with a warning at the
//! annotation; denied here to show it.
#![deny(warnings)]
use nnz::prelude::*;

graph! {
    pub model Warned {
        fallback = warn;
        input x: csr[n, d];
        let y: csr[n, d] = log(x);
        output y;
    }
}

fn main() {}
