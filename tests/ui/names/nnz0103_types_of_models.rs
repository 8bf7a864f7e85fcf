use nnz::prelude::*;

graph! {
    pub model Scorer {
        input x: dense[n, d];
        output y = tanh(x);
    }

    pub model Scorer {
        input x: dense[n, d];
        output y = exp(x);
    }

    pub model ScorerBatch {
        input x: dense[n, d];
        output y = abs(x);
    }
}

fn main() {}
