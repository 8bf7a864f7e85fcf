//! Products with an array of which only some rows are stored: the others are zero, and take no
//! part.

use super::gather::{add_scaled_wide, entries};
use super::gemm::{self, Matrix};
use super::{by_rows, product_shape};
use crate::formats::{ColumnId, CsrView, Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::Context;
use crate::kernels::context::in_sums;
use crate::with_column_ids;
use sparse_core::element::{Factor, Float};

/// Dense by row_sparse.
pub fn dense_row_sparse<T: Float>(
    out: &mut Dense<T>,
    lhs: DenseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    transpose_lhs: bool,
    context: &mut Context,
) {
    let (left, width) = (Matrix::left(lhs, transpose_lhs), rhs.shape().row_size());
    out.reset(product_shape(left.n_rows, width, lhs.shape(), rhs.shape()));
    in_sums(out.values_mut(), &mut context.sums, |sums| {
        for (row, sums) in sums.chunks_exact_mut(width.max(1)).enumerate() {
            rhs.iter_rows().for_each(|(id, x)| add_scaled_wide::<T, T>(sums, x, left.at(row, id)));
        }
    });
}

/// Dense by row_sparse transposed: the columns of rows that are not stored are zero.
pub fn dense_row_sparse_transposed<T: Float>(
    out: &mut Dense<T>,
    lhs: DenseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    transpose_lhs: bool,
    _context: &mut Context,
) {
    let (left, n_cols) = (Matrix::left(lhs, transpose_lhs), rhs.shape().n_rows());
    out.reset(product_shape(left.n_rows, n_cols, lhs.shape(), rhs.shape()));
    for (row, out) in out.values_mut().chunks_exact_mut(n_cols.max(1)).enumerate() {
        for (id, y) in rhs.iter_rows() {
            let at = |(inner, &y): (usize, &T)| left.at(row, inner).widen() * y.widen();
            out[id] = T::narrow(y.iter().enumerate().map(at).sum());
        }
    }
}

/// Csr by row_sparse transposed, likewise.
pub fn csr_row_sparse_transposed<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    lhs: CsrView<'_, V>,
    rhs: RowSparseView<'_, T>,
    _context: &mut Context,
) {
    let n_cols = rhs.shape().n_rows();
    out.reset([lhs.n_rows(), n_cols]);
    with_column_ids!(lhs.columns(), |ids| {
        for (row, out) in out.values_mut().chunks_exact_mut(n_cols.max(1)).enumerate() {
            let (ids, values) = entries(lhs, ids, row);
            for (id, y) in rhs.iter_rows() {
                let terms = ids.iter().zip(values);
                let terms = terms.map(|(column, value)| value.times(y[column.at()].widen()));
                out[id] = T::narrow(terms.sum());
            }
        }
    });
}

/// Row_sparse by dense: the rows are those of the left side.
pub fn row_sparse_dense<T: Float>(
    out: &mut RowSparse<T>,
    lhs: RowSparseView<'_, T>,
    rhs: DenseView<'_, T>,
    transpose_rhs: bool,
    _context: &mut Context,
) {
    let (left, right) = (Matrix::of_stored(lhs), Matrix::new(rhs, transpose_rhs));
    let shape = by_rows(lhs.shape().n_rows(), right.n_cols, rhs.shape());
    out.rebuild(shape, |ids, values| {
        ids.extend(lhs.iter_rows().map(|(id, _)| id as u64));
        values.resize(left.n_rows * right.n_cols, T::zero());
        gemm::multiply(values, left, right);
    });
}

/// Row_sparse, transposed, by dense: a sum over the rows stored.
pub fn row_sparse_transposed_dense<T: Float>(
    out: &mut Dense<T>,
    lhs: RowSparseView<'_, T>,
    rhs: DenseView<'_, T>,
    transpose_rhs: bool,
    context: &mut Context,
) {
    let right = Matrix::new(rhs, transpose_rhs);
    out.reset_for_overwrite(by_rows(lhs.shape().row_size(), right.n_cols, rhs.shape()));
    in_sums(out.values_mut(), &mut context.sums, |sums| {
        for (id, x) in lhs.iter_rows() {
            for (&x, sums) in x.iter().zip(sums.chunks_exact_mut(right.n_cols.max(1))) {
                match right.row(id) {
                    Some(y) => add_scaled_wide::<T, T>(sums, y, x),
                    None => sums.iter_mut().enumerate().for_each(|(column, sum)| {
                        *sum += x.as_f64() * right.at(id, column).as_f64();
                    }),
                }
            }
        }
    });
}

/// Row_sparse, transposed, by row_sparse: a sum over the rows that both store.
pub fn row_sparse_transposed_row_sparse<T: Float>(
    out: &mut Dense<T>,
    lhs: RowSparseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    context: &mut Context,
) {
    let width = rhs.shape().row_size();
    out.reset_for_overwrite(by_rows(lhs.shape().row_size(), width, rhs.shape()));
    in_sums(out.values_mut(), &mut context.sums, |sums| {
        for (id, y) in rhs.iter_rows() {
            let x = lhs.row(id).unwrap_or_default();
            for (&x, sums) in x.iter().zip(sums.chunks_exact_mut(width.max(1))) {
                add_scaled_wide::<T, T>(sums, y, x);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cost_grows_with_the_height() {
        let high = 1 << 40;
        let x = RowSparse::new([high, 2], vec![3, high as u64 - 1], vec![1.0, 2.0, 3.0, 4.0]);
        let (x, mut context) = (x.unwrap(), Context::default());
        let mut product = RowSparse::default();
        let rhs = DenseView::new([2], &[1.0, 10.0]).unwrap();
        row_sparse_dense(&mut product, x.view(), rhs, false, &mut context);
        assert_eq!((product.indices(), product.values()), (x.indices(), &[21.0, 43.0][..]));
        let mut sum = Dense::default();
        row_sparse_transposed_row_sparse(&mut sum, x.view(), product.view(), &mut context);
        assert_eq!((sum.shape(), sum.values()), (&[2].into(), &[150.0, 214.0][..]));
    }
}
