use nnz::prelude::*;

graph! {
    pub model UnknownDeclaration {
        imput x: csr[n, d];
        input z: dense[n, d];
        output z;
    }
}

fn main() {}
