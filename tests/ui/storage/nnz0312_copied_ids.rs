use nnz::prelude::*;

graph! {
    pub model CopiedIds {
        input x: dense[n, 3];
        input user: dense<u64>[n];
        output y = tanh(x);
        output user;
    }
}

fn main() {}
