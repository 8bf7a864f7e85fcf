use nnz::prelude::*;

graph! {
    pub model M {
        input x: dense[n, d];
        label y: dense[n, 1];
        param w: dense[d, 1] = Zeros;
        state centre: dense[d] = Zeros;
        state idle: dense[d] = Zeros;
        state rows: row_sparse[d, 1] = Zeros;
        update centre = 0.5 * centre;
        update centre = centre;
        update center = centre;
        update w = 0.5 * w;
        loss squared_error(dot(x - centre, w), y);
    }

    pub model Idle {
        input x: dense[n, d];
        state centre: dense[d] = Zeros;
        output y = x - centre;
    }

    pub model Types {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: dense[d, 1] = Zeros;
        state shape: dense[d] = Zeros;
        update shape = sum(x, axis = 1);
        loss squared_error(dot(x, w), y);
    }
}

fn main() {}
