use nnz::prelude::*;

graph! {
    pub model UnknownAttribute {
        input x: csr[n, d];
        input g: dense[n, 2];
        output y = dot(x, g, transpose_left = true);
        output z = tanh(x, axis = 1);
    }
}

fn main() {}
