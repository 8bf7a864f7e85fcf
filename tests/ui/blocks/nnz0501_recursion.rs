use nnz::prelude::*;

graph! {
    block first(x) { second(x) + 1 }
    block second(x) { tanh(first(x)) }
    block itself(x) { itself(x) }
    block innocent(x) { first(x) }

    pub model Uses {
        input x: dense[n, d];
        output y = innocent(x);
    }
}

fn main() {}
