use nnz::prelude::*;

graph! {
    pub model ElementOfTheModel {
        input x: csr<f64>[n, d];
        output y = tanh(x);
    }
}

fn main() {}
