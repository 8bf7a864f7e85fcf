// Attributes without a default must be given.

use nnz::prelude::*;

graph! {
    pub model Clipped {
        input x: csr[n, 100];
        output y = clip(x, lower = -1);
        output z = sum(x, axis = [0, _]);
    }
}

fn main() {}
