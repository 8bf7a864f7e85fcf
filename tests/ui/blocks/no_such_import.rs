use nnz::prelude::*;

graph! {
    use nnz::blocks::lineer;

    pub model Uses {
        input x: csr[n, d];
        output y = lineer(x, x);
    }
}

fn main() {}
