//! Elements, ids and columns of types that arrays do not hold.
use nnz::ops;
use nnz::prelude::*;

fn of_words(_: &Dense<String>) {}

fn of_small_integers(_: &Csr<i8>) {}

fn columns_with_a_sign() -> Result<Csr> {
    Ok(Csr::new(2, vec![0, 1], vec![1i32], vec![1.0])?)
}

fn product_of_ids(x: &Csr<u32>, w: &Dense<u32>) {
    let _ = ops::dot(x, w);
}

fn cast_to_words(x: &Dense) {
    let _ = x.cast::<String>();
}

fn main() {}
