#![deny(warnings)]
use nnz::prelude::*;

graph! {
    pub model UnusedValue {
        input x: dense[n, d];
        let y = tanh(x);
        let z = square(y);
        output y;
    }
}

fn main() {}
