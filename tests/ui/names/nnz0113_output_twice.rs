use nnz::prelude::*;

graph! {
    pub model OutputTwice {
        input x: dense[n, d];
        output y = tanh(x);
        output y = exp(x);
    }
}

fn main() {}
