// Whether a function keeps a csr may depend on its numbers: it must be 0 at 0.

use nnz::prelude::*;

graph! {
    pub model Clipped {
        input x: csr[n, 100];
        output kept = clip(x, lower = 0, upper = 0.5);
        output also_kept = x > 0.5;
        output squared = power(x, 2);
        output refused = clip(x, lower = 0.5, upper = 1);
        output also_refused = x < 0.5;
    }
}

fn main() {}
