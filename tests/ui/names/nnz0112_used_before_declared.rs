use nnz::prelude::*;

graph! {
    pub model UsedBeforeDeclared {
        input x: csr[n, d];
        let z = square(y);
        let y = tanh(x);
        output z;
    }
}

fn main() {}
