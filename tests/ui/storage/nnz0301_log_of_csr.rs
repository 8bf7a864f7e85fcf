use nnz::prelude::*;

graph! {
    pub model LogOfCsr {
        input x: csr[n, 10000];
        let y = log(x);
        let z = tanh(y);
        output z;
        output w = x + 1.0;
    }
}

fn main() {}
