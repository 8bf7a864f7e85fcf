use nnz::prelude::*;

graph! {
    pub model CsrParameter {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: csr[d, 1] = Zeros;
        let pred = dot(x, w);
        loss squared_error(pred, y);
        output pred;
    }
}

graph! {
    pub model CsrParameterWithoutLoss {
        input x: csr[n, d];
        param w: csr[d, 1] = Zeros;
        output pred = dot(x, w);
    }
}

fn main() {}
