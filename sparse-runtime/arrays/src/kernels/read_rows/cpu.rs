//! Rows that columns name, on the CPU.

use crate::formats::{CsrView, DenseView, RowSparse, RowSparseView};
use crate::kernels::Context;
use crate::kernels::features::number_columns;
use sparse_core::element::{Factor, Float};

/// Those of a dense array.
pub fn dense_csr<T: Float, V: Factor<T>>(
    out: &mut RowSparse<T>,
    x: DenseView<'_, T>,
    by: CsrView<'_, V>,
    context: &mut Context,
) {
    row_sparse_csr(out, RowSparseView::table(*x.shape(), x.values()), by, context);
}

/// Those of a row_sparse array: a row that it does not store is left out.
pub fn row_sparse_csr<T: Float, V: Factor<T>>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    by: CsrView<'_, V>,
    context: &mut Context,
) {
    out.rebuild(*x.shape(), |ids, values| {
        number_columns(&mut context.ids, by, |row| {
            if let Some(stored) = x.row(row) {
                ids.push(row as u64);
                values.extend_from_slice(stored);
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Csr;

    #[test]
    fn rows_are_read_once_in_their_order() {
        let by = Csr::from_rows(9, [vec![(2, 0.0), (8, 1.0)], vec![], vec![(2, 5.0), (7, 1.0)]]);
        let x = RowSparse::new([9, 2], vec![0, 2, 8], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let (mut out, mut context) = (RowSparse::default(), Context::default());
        row_sparse_csr(&mut out, x.view(), by.unwrap().view(), &mut context);
        let expected = RowSparse::new([9, 2], vec![2, 8], vec![3.0, 4.0, 5.0, 6.0]).unwrap();
        assert_eq!(out, expected);
    }
}
