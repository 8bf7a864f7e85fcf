use nnz::prelude::*;

graph! {
    pub model Index {
        input x: dense[n, 8];
        output first = x[0];
        output cast = tanh(x) as f32;
        output squared = x ** 2;
        output turned = dot(x, x.T);
        output product = x @ x;
    }
}

fn main() {}
