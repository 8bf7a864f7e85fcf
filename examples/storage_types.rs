//! Storage types: what an operator gives for operands of each, in a graph and without one.
//!
//! ```text
//! cargo run --release --example storage_types
//! ```

use nnz::ops;
use nnz::prelude::*;

graph! {
    /// Three sums, each in the storage of its operands. A graph without parameters is a function.
    pub model Composition {
        input a: dense[m, n];
        input b: csr[m, n];
        input c: row_sparse[m, n];

        output d = a + a;
        output e = -b;
        output f = c + c;
    }

    /// What has no sparse kernel is an error, unless the graph allows a fallback: then the operands
    /// are made dense, which the plan shows.
    pub model Fallback {
        fallback = allow;

        input b: csr[m, n];
        input c: row_sparse[m, n];

        output sum = b + c;
        output logarithm = log(b);
    }

    /// The way to say it without a fallback.
    pub model Spelled {
        input b: csr[m, n];
        input c: row_sparse[m, n];

        output sum = dense(b) + dense(c);
        output logarithm = log1p(b);
    }
}

fn main() -> Result<()> {
    let a = Dense::from_rows(&[[1.0f32, 2.0], [3.0, 4.0]]);
    let b = Csr::from_rows(2, [vec![(1, 5.0f32)], vec![]])?;
    let c = RowSparse::new([2, 2], vec![1], vec![6.0f32, 7.0])?;

    let mut composition = Composition::new(dims! {}, Seed(0))?;
    let batch = CompositionBatch { a: a.view(), b: b.view(), c: c.view() };
    let outputs = composition.forward(&batch)?;
    // The storage is in the types of the fields.
    let (d, e, f): (&Dense, &Csr, &RowSparse) = (&outputs.d, &outputs.e, &outputs.f);
    println!("a + a = {d}\n-b = {e}\nc + c = {f}");
    println!("{}", Composition::PLAN);

    let mut fallback = Fallback::new(dims! {}, Seed(0))?;
    let batch = FallbackBatch { b: b.view(), c: c.view() };
    let outputs = fallback.forward(&batch)?;
    println!("b + c = {}\nlog(b) = {}", outputs.sum, outputs.logarithm);
    println!("{}", Fallback::PLAN);

    let mut spelled = Spelled::new(dims! {}, Seed(0))?;
    let batch = SpelledBatch { b: b.view(), c: c.view() };
    let logarithm: &Csr = &spelled.forward(&batch)?.logarithm;
    println!("log1p(b) = {logarithm}");

    // The same operators are functions and signs on arrays; a missing rule is a type error.
    let product: Dense = ops::dot(&b, &a)?;
    let gradient: RowSparse = ops::dot(b.t(), &product)?;
    let scaled: Csr = &b * 0.5;
    println!("b · a = {product}\nbᵀ · (b · a) = {gradient}\nb * 0.5 = {scaled}");
    Ok(())
}
