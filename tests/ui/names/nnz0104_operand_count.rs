use nnz::prelude::*;

graph! {
    pub model OperandCount {
        input x: csr[n, d];
        output y = dot(x);
        output z = tanh(x, x);
    }
}

fn main() {}
