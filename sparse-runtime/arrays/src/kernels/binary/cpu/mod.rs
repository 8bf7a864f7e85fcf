//! Element-wise functions of two operands on the CPU: one function a family and rule.
//!
//! Sparse operands are first repeated to the shape of the result, then combined in place, so that
//! what depends on the function is one short loop.

mod combine;
mod merge;
mod repeat;

pub use combine::dense_dense;

use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView, Shape};
use crate::kernels::Context;
use crate::kernels::broadcast::broadcast;
use sparse_core::element::Float;

macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident($out:ident, $lhs:ident, $rhs:ident) = $body:expr;)*) => {
        $(
            $(#[$doc])*
            pub fn $name<T: Float>(
                out: &mut $out<T>,
                lhs: kernels!(@view $lhs),
                rhs: kernels!(@view $rhs),
                f: impl Fn(T, T) -> T + Sync + Copy,
                context: &mut Context,
            ) {
                $body(out, lhs, rhs, f, context)
            }
        )*
    };
    (@view Dense) => { DenseView<'_, T> };
    (@view Csr) => { CsrView<'_, T> };
    (@view RowSparse) => { RowSparseView<'_, T> };
}

kernels! {
    /// What either stores, without results equal to 0.
    union_csr_csr(Csr, Csr, Csr) = merge::union_csr;
    /// The rows that either stores.
    union_row_sparse_row_sparse(RowSparse, RowSparse, RowSparse) = |out, lhs, rhs, f, _| merge::union_row_sparse(out, lhs, rhs, f);
    /// Dense.
    union_csr_dense(Dense, Csr, Dense) = |out, lhs, rhs, f, _| csr_into_dense(out, lhs, rhs, f);
    /// Dense.
    union_dense_csr(Dense, Dense, Csr) = |out, lhs, rhs, f, _| csr_into_dense(out, rhs, lhs, flip(f));
    /// Dense.
    union_row_sparse_dense(Dense, RowSparse, Dense) = |out, lhs, rhs, f, _| row_sparse_into_dense(out, lhs, rhs, f);
    /// Dense.
    union_dense_row_sparse(Dense, Dense, RowSparse) =
        |out, lhs, rhs, f, _| row_sparse_into_dense(out, rhs, lhs, flip(f));
    /// What both store, results equal to 0 included.
    intersection_csr_csr(Csr, Csr, Csr) = merge::intersection_csr;
    /// The rows that both store.
    intersection_row_sparse_row_sparse(RowSparse, RowSparse, RowSparse) = |out, lhs, rhs, f, _| merge::intersection_row_sparse(out, lhs, rhs, f);
    /// What the csr operand stores.
    intersection_csr_dense(Csr, Csr, Dense) = |out, lhs, rhs, f, _| csr_pattern(out, lhs, rhs, f);
    /// What the csr operand stores.
    intersection_dense_csr(Csr, Dense, Csr) = |out, lhs, rhs, f, _| csr_pattern(out, rhs, lhs, flip(f));
    /// The rows that the row_sparse operand stores.
    intersection_row_sparse_dense(RowSparse, RowSparse, Dense) = |out, lhs, rhs, f, _| row_sparse_pattern(out, lhs, rhs, f);
    /// The rows that the row_sparse operand stores.
    intersection_dense_row_sparse(RowSparse, Dense, RowSparse) =
        |out, lhs, rhs, f, _| row_sparse_pattern(out, rhs, lhs, flip(f));
    /// What the left operand stores; the right one is 0 where it stores nothing.
    left_csr_csr(Csr, Csr, Csr) = merge::left_csr;
    /// The rows that the left operand stores.
    left_row_sparse_csr(RowSparse, RowSparse, Csr) = |out, lhs, rhs, f, _| merge::left_row_sparse_csr(out, lhs, rhs, f);
    /// The rows that the left operand stores.
    left_row_sparse_row_sparse(RowSparse, RowSparse, RowSparse) = |out, lhs, rhs, f, _| merge::left_row_sparse(out, lhs, rhs, f);
    /// What the left operand stores.
    left_csr_dense(Csr, Csr, Dense) = |out, lhs, rhs, f, _| csr_pattern(out, lhs, rhs, f);
    /// The rows that the left operand stores.
    left_row_sparse_dense(RowSparse, RowSparse, Dense) = |out, lhs, rhs, f, _| row_sparse_pattern(out, lhs, rhs, f);
    /// What both store.
    gradient_csr_csr(Csr, Csr, Csr) = merge::intersection_csr;
    /// The rows that both store.
    gradient_row_sparse_row_sparse(RowSparse, RowSparse, RowSparse) = |out, lhs, rhs, f, _| merge::intersection_row_sparse(out, lhs, rhs, f);
    /// What the second operand stores.
    gradient_dense_csr(Csr, Dense, Csr) = |out, lhs, rhs, f, _| csr_pattern(out, rhs, lhs, flip(f));
    /// Dense: where the second operand stores nothing it is 0, and has a gradient.
    gradient_dense_row_sparse(Dense, Dense, RowSparse) =
        |out, lhs, rhs, f, _| row_sparse_into_dense(out, rhs, lhs, flip(f));
    /// What the first operand stores.
    sloped_gradient_csr_csr(Csr, Csr, Csr) = merge::left_csr;
    /// The rows that the first operand stores.
    sloped_gradient_row_sparse_row_sparse(RowSparse, RowSparse, RowSparse) = |out, lhs, rhs, f, _| merge::left_row_sparse(out, lhs, rhs, f);
    /// Dense: where the second operand stores nothing it is 0, and has a gradient.
    sloped_gradient_dense_csr(Dense, Dense, Csr) =
        |out, lhs, rhs, f, _| csr_into_dense(out, rhs, lhs, flip(f));
    /// Dense: where the second operand stores nothing it is 0, and has a gradient.
    sloped_gradient_dense_row_sparse(Dense, Dense, RowSparse) =
        |out, lhs, rhs, f, _| row_sparse_into_dense(out, rhs, lhs, flip(f));
}

/// The same function with its operands exchanged.
fn flip<T>(f: impl Fn(T, T) -> T + Sync + Copy) -> impl Fn(T, T) -> T + Sync + Copy {
    move |x, y| f(y, x)
}

fn csr_into_dense<T: Float>(
    out: &mut Dense<T>,
    sparse: CsrView<'_, T>,
    dense: DenseView<'_, T>,
    f: impl Fn(T, T) -> T + Sync + Copy,
) {
    repeat::csr_into_dense(out, sparse, broadcast(&shape_of(&sparse), dense.shape()));
    combine::dense_with_dense(out, dense, f);
}

fn row_sparse_into_dense<T: Float>(
    out: &mut Dense<T>,
    sparse: RowSparseView<'_, T>,
    dense: DenseView<'_, T>,
    f: impl Fn(T, T) -> T + Sync + Copy,
) {
    repeat::row_sparse_into_dense(out, sparse, broadcast(sparse.shape(), dense.shape()));
    combine::dense_with_dense(out, dense, f);
}

fn csr_pattern<T: Float>(
    out: &mut Csr<T>,
    sparse: CsrView<'_, T>,
    dense: DenseView<'_, T>,
    f: impl Fn(T, T) -> T + Sync + Copy,
) {
    let shape = broadcast(&shape_of(&sparse), dense.shape());
    debug_assert_eq!(shape.rank(), 2, "csr has rank 2");
    repeat::csr(out, sparse, shape.n_rows(), shape.row_size());
    combine::csr_with_dense(out, dense, f);
}

fn row_sparse_pattern<T: Float>(
    out: &mut RowSparse<T>,
    sparse: RowSparseView<'_, T>,
    dense: DenseView<'_, T>,
    f: impl Fn(T, T) -> T + Sync + Copy,
) {
    repeat::row_sparse(out, sparse, broadcast(sparse.shape(), dense.shape()));
    combine::row_sparse_with_dense(out, dense, f);
}

fn shape_of<T: Float>(matrix: &CsrView<'_, T>) -> Shape {
    Shape::from([matrix.n_rows(), matrix.n_cols()])
}
