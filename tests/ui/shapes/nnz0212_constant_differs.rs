use nnz::prelude::*;

const CLASSES: usize = 10;
const WIDTH: usize = 8;

graph! {
    pub model ConstantDiffers {
        const CLASSES;
        const WIDTH;
        input x: csr[n, d];
        param(frozen) w: row_sparse[d, CLASSES] = Zeros;
        param(frozen) v: dense[WIDTH, 2] = Zeros;
        param(frozen) b: dense[12] = Zeros;
        output sum = dot(x, w) + b;
        output product = dot(dot(x, w), v);
    }
}

fn main() {}
