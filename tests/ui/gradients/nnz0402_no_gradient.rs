use nnz::prelude::*;

graph! {
    pub model NoGradient {
        input x: csr[n, d];
        input t: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param scale: dense[1] = Ones;
        loss squared_error(dot(x, w), t * scale);
    }

    operator stepped(x) { each = crate::stepped; }

    pub model NoneDeclared {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        loss squared_error(stepped(dot(x, w)), y);
    }
}

fn stepped(x: f32) -> f32 {
    x.floor()
}

fn main() {}
