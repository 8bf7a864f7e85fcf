//! A type error in an initializer is one in the model.
use nnz::prelude::*;

graph! {
    pub model Initialized {
        input x: dense[n, 1];
        param b: dense[1] = Constant("0.5");
        output score = x + b;
    }
}

fn main() {}
