use nnz::prelude::*;

graph! {
    pub model NoBroadcast {
        input x: dense[n, k];
        param scale: dense[n] = Ones;
        output y = x * scale;
    }
}

fn main() {}
