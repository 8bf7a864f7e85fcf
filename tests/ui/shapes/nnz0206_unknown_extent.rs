use nnz::prelude::*;

graph! {
    pub model UnknownExtent {
        input x: dense[n, _];
        output y = tanh(x);
    }
}

fn main() {}
