//! The macro-free operators refuse what the table refuses, in its words.
use nnz::ops;
use nnz::prelude::*;

fn logarithm(x: &Csr) -> Result<Dense> {
    ops::log(x)
}

fn main() {
    let _ = logarithm;
}
