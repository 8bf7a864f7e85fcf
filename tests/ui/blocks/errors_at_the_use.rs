use nnz::prelude::*;

// What is wrong with one use of a block is said there, with the lines of the blocks in words.
graph! {
    use nnz::blocks::linear;

    block two(x, w, v) {
        let hidden: dense[n, k] = relu(linear(x, w));
        linear(hidden, v)
    }

    pub model Uses {
        input x: csr[n, d];
        param(frozen) w: row_sparse[d, 3] = Zeros;
        param(frozen) v: dense[3, 1] = Zeros;
        param(frozen) u: dense[4, 1] = Zeros;
        output right = two(x, w, v);
        output wrong = two(x, w, u);
        output also = nnz::blocks::linear(x, v);
    }

    pub model Storage {
        input z: row_sparse[n, d];
        param(frozen) w: row_sparse[d, 3] = Zeros;
        param(frozen) v: dense[3, 1] = Zeros;
        output storage = two(z, w, v);
    }
}

fn main() {}
