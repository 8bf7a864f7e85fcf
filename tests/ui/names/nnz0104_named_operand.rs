use nnz::prelude::*;

graph! {
    pub model NamedOperands {
        input x: csr[n, d];
        label y: dense[n, 1];
        label v: dense[n];
        param w: row_sparse[d, 1] = Zeros;
        let p = dot(x, w);
        loss logistic(p, y, weight = v * 2.0);
        loss logistic(p, y, v, weight = v);
        loss logistic(p, weight = v);
        loss logistic(p, y, weigth = v);
        loss logistic(p, y, weight = true);
        output p;
    }
}

fn main() {}
