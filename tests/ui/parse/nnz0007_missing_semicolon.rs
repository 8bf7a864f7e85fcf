use nnz::prelude::*;

graph! {
    pub model NoSemicolon {
        input x: dense[n, d];
        output y = tanh(x)
    }
}

fn main() {}
