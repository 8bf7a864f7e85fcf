use nnz::prelude::*;

graph! {
    pub model AnnotatedSparse {
        input z: dense[n, d];
        let y: csr[n, d] = exp(z);
        output y;
    }
}

fn main() {}
