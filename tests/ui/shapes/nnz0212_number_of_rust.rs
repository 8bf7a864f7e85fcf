use nnz::prelude::*;

const LOW: f32 = 0.5;
const DELTA: f32 = 0.0;
const K: usize = 9;

graph! {
    pub model NumberOfRust {
        const DELTA: f32;
        input x: csr[n, d];
        input z: dense[n, 8];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        loss huber(dot(x, w), y, delta = DELTA);
        output clipped = clip(x, lower = crate::LOW, upper = 2.0);
        output best = topk(z, k = crate::K, axis = 1);
        output pairs = reshape(z, shape = [0, crate::K - 6, 4]);
        output wrong = topk(z, k = crate::DELTA, axis = 1);
    }
}

fn main() {}
