use nnz::prelude::*;

graph! {
    block pooled(x, over, keep = false) {
        sum(x, axis = over, keepdims = keep)
    }

    pub model ListsAndFlags {
        input x: dense[n, 4];
        output fits = pooled(x, [0], true);
        output list = concat([x, x]);
        output entries = concat([0, 1], x);
        output flag = sum(x, true);
        output kind = pooled(x, csr);
        output unknown = pooled(x, 0, keep = yes);
        output many = pooled(x, [0], true, [1]);
    }
}

fn main() {}
