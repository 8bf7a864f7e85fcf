//! Products at a pattern on the CPU.

use crate::formats::{Csr, CsrView, DenseView, RowSparse, RowSparseView};
use crate::kernels::Context;
use crate::kernels::features::Entries;
use sparse_core::element::Float;

/// Of two dense matrices.
pub fn dense_dense_csr<T: Float>(
    out: &mut Csr<T>,
    lhs: DenseView<'_, T>,
    rhs: DenseView<'_, T>,
    like: CsrView<'_, T>,
    transpose_lhs: bool,
    transpose_rhs: bool,
    _context: &mut Context,
) {
    let inner = if transpose_lhs { lhs.shape().n_rows() } else { lhs.shape().row_size() };
    let (lhs, rhs) = (Strided::new(lhs, transpose_lhs), Strided::new(rhs, !transpose_rhs));
    at_pattern(out, like, |row, column| {
        if lhs.step == 1 && rhs.step == 1 {
            let (x, y) = (&lhs.values[row * inner..], &rhs.values[column * inner..]);
            return x[..inner].iter().zip(y).map(|(x, y)| x.widen() * y.widen()).sum();
        }
        (0..inner).map(|at| lhs.at(row, at).widen() * rhs.at(column, at).widen()).sum()
    });
}

/// Of a dense matrix and a row_sparse one that is read transposed; a row that is not stored is
/// zero.
pub fn dense_row_sparse_transposed_csr<T: Float>(
    out: &mut Csr<T>,
    lhs: DenseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    like: CsrView<'_, T>,
    transpose_lhs: bool,
    _context: &mut Context,
) {
    let lhs = Strided::new(lhs, transpose_lhs);
    at_pattern(out, like, |row, column| {
        let y = rhs.row(column).unwrap_or_default();
        if lhs.step == 1 {
            let x = lhs.values[row * lhs.row_step..].iter();
            return x.zip(y).map(|(x, y)| x.widen() * y.widen()).sum();
        }
        let each = y.iter().enumerate();
        each.map(|(at, y)| lhs.at(row, at).widen() * y.widen()).sum()
    });
}

/// Of a dense matrix and a row_sparse one, or of two vectors; a row that is not stored is zero.
pub fn dense_row_sparse_csr<T: Float>(
    out: &mut Csr<T>,
    lhs: DenseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    like: CsrView<'_, T>,
    transpose_lhs: bool,
    context: &mut Context,
) {
    if rhs.shape().rank() == 1 {
        return dense_row_sparse_transposed_csr(out, lhs, rhs, like, transpose_lhs, context);
    }
    let lhs = Strided::new(lhs, transpose_lhs);
    at_pattern(out, like, |row, column| {
        let each = rhs.iter_rows();
        each.map(|(at, y)| lhs.at(row, at).widen() * y[column].widen()).sum()
    });
}

/// Of two dense matrices at the rows that a row_sparse array stores.
pub fn dense_dense_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    lhs: DenseView<'_, T>,
    rhs: DenseView<'_, T>,
    like: RowSparseView<'_, T>,
    transpose_lhs: bool,
    transpose_rhs: bool,
    _context: &mut Context,
) {
    let inner = if transpose_lhs { lhs.shape().n_rows() } else { lhs.shape().row_size() };
    let (lhs, rhs) = (Strided::new(lhs, transpose_lhs), Strided::new(rhs, !transpose_rhs));
    let n_cols = like.shape().row_size();
    out.rebuild(*like.shape(), |ids, values| {
        for (row, _) in like.iter_rows() {
            ids.push(row as u64);
            let product = |column: usize| {
                let each =
                    (0..inner).map(|at| lhs.at(row, at).widen() * rhs.at(column, at).widen());
                T::narrow(each.sum())
            };
            values.extend((0..n_cols).map(product));
        }
    });
}

/// Writes an element for each entry of `like`.
fn at_pattern<T: Float>(
    out: &mut Csr<T>,
    like: CsrView<'_, T>,
    element: impl Fn(usize, usize) -> T::Accumulator,
) {
    out.assign_csr(like);
    let mut values = out.values_mut().iter_mut();
    for row in 0..like.n_rows() {
        like.for_each(row, |column, _| {
            if let Some(value) = values.next() {
                *value = T::narrow(element(row, column));
            }
        });
    }
}

/// A matrix, read by rows or, transposed, by columns.
struct Strided<'a, T> {
    values: &'a [T],
    row_step: usize,
    step: usize,
}

impl<'a, T: Float> Strided<'a, T> {
    fn new(array: DenseView<'a, T>, by_columns: bool) -> Self {
        let (values, width) = (array.values(), array.shape().row_size());
        if by_columns {
            Strided { values, row_step: 1, step: width }
        } else {
            Strided { values, row_step: width, step: 1 }
        }
    }

    #[inline(always)]
    fn at(&self, row: usize, at: usize) -> T {
        self.values[row * self.row_step + at * self.step]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::RowSparse;

    #[test]
    fn no_cost_grows_with_the_width() {
        let wide = 1 << 40;
        let like = Csr::from_rows(wide, [vec![(3, 0.0), (wide - 1, 7.0)], vec![]]).unwrap();
        let lhs = DenseView::new([2, 2], &[1.0, 10.0, 5.0, 5.0]).unwrap();
        let rhs = RowSparse::new([wide, 2], vec![wide as u64 - 1], vec![2.0, 3.0]).unwrap();
        let (mut out, mut context) = (Csr::default(), Context::default());
        let rhs = rhs.view();
        dense_row_sparse_transposed_csr(&mut out, lhs, rhs, like.view(), false, &mut context);
        assert_eq!(out.values(), [0.0, 32.0]);
        assert_eq!(out.n_cols(), wide);
    }
}
