use nnz::prelude::*;

graph! {
    pub model DuplicateName {
        input x: dense[n, d];
        let y = tanh(x);
        let y = exp(x);
        output y;
    }
}

fn main() {}
