use nnz::prelude::*;

graph! {
    pub model AnnotatedElement {
        input x: dense[n, 3];
        let y: dense<f64>[n, 3] = tanh(x);
        output y;
    }
}

fn main() {}
