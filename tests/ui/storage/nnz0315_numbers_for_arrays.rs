use nnz::prelude::*;

graph! {
    pub model Numbers {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        state seen: dense[] = Zeros;
        loss logistic(dot(x, w), y);
        output scaled = x * sum(2) * seen;
        output made = dense(3) + x;
        update seen = seen + 1;
    }

    pub model Copied {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        state seen: dense[] = Zeros;
        loss logistic(dot(x, w) + seen, y);
        output three = 3;
        update seen = 1;
    }
}

fn main() {}
