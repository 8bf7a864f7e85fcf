use nnz::prelude::*;

graph! {
    pub model BadOption {
        fallback = silent;
        dtype = u32;
        fuse = maybe;
        input x: dense[n, d];
        output x;
    }
}

fn main() {}
