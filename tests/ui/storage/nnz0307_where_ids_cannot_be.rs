use nnz::prelude::*;

graph! {
    pub model WhereIdsCannotBe {
        input x: csr<i64>[n, d];
        input z: dense[n, 3];
        param w: dense<u64>[3, 2] = Zeros;
        let s = tanh(z);
        output s;
    }
}

fn main() {}
