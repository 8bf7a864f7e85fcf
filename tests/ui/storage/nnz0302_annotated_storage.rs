use nnz::prelude::*;

graph! {
    pub model AnnotatedStorage {
        input x: csr[n, d];
        let y: dense[n, d] = tanh(x);
        output y;
    }
}

fn main() {}
