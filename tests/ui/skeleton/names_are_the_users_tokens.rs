//! rustc reports emitted fields at the words in the model: fields carry the spans of these words,
//! by which editors find, complete and rename them.
#![deny(non_snake_case)]
use nnz::prelude::*;

graph! {
    pub model Spans {
        input Features: csr[n, d];
        label Target: dense[n, 1];
        param Weights: row_sparse[d, 1] = Zeros;
        let score = dot(Features, Weights);
        loss squared_error(score, Target);
        output Score = score;
    }
}

fn main() {}
