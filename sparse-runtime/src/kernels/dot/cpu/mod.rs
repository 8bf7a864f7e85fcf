//! Matrix products on the CPU.

mod gather;
mod gemm;
mod scatter;

use crate::formats::{
    ColumnId, Csr, CsrView, Dense, DenseView, RowIdsView, RowSparse, RowSparseView, with_id_type,
};
use crate::kernels::Context;
use crate::with_column_ids;
use gemm::Matrix;
use sparse_core::element::Float;

/// Dense by dense.
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    lhs: DenseView<'_, T>,
    rhs: DenseView<'_, T>,
    transpose_lhs: bool,
    transpose_rhs: bool,
    _context: &mut Context,
) {
    let (lhs, rhs) = (Matrix::new(lhs, transpose_lhs), Matrix::new(rhs, transpose_rhs));
    out.reset_for_overwrite([lhs.n_rows, rhs.n_cols]);
    gemm::multiply(out.values_mut(), lhs, rhs);
}

/// Csr by dense.
pub fn csr_dense<T: Float>(
    out: &mut Dense<T>,
    lhs: CsrView<'_, T>,
    rhs: DenseView<'_, T>,
    transpose_rhs: bool,
    _context: &mut Context,
) {
    let right = Matrix::new(rhs, transpose_rhs);
    out.reset_for_overwrite([lhs.n_rows(), right.n_cols]);
    // A single column is the same memory either way.
    if transpose_rhs && right.n_cols != 1 {
        gather::products_with_rows(out.values_mut(), lhs, rhs.values());
    } else {
        gather::sums_of_rows(out.values_mut(), lhs, rhs.values(), right.n_cols);
    }
}

/// Csr, transposed, by dense: the rows are the columns that occur.
pub fn csr_transposed_dense<T: Float>(
    out: &mut RowSparse<T>,
    lhs: CsrView<'_, T>,
    rhs: DenseView<'_, T>,
    transpose_rhs: bool,
    context: &mut Context,
) {
    let right = Matrix::new(rhs, transpose_rhs);
    let columns = &mut context.ids;
    out.rebuild([lhs.n_cols(), right.n_cols], |ids, values| {
        columns.begin(lhs.n_cols());
        with_column_ids!(lhs.columns(), |ids| {
            for (&start, &end) in lhs.starts().iter().zip(lhs.ends()) {
                ids[start as usize..end as usize].iter().for_each(|id| columns.insert(id.at()));
            }
        });
        columns.finish(|column| ids.push(column as u64));
        values.resize(ids.len() * right.n_cols, T::zero());
        scatter::dense(values, lhs, right, |column| columns.rank(column));
    });
}

/// Csr, transposed, by dense, as dense.
pub fn csr_transposed_dense_into_dense<T: Float>(
    out: &mut Dense<T>,
    lhs: CsrView<'_, T>,
    rhs: DenseView<'_, T>,
    transpose_rhs: bool,
    _context: &mut Context,
) {
    let right = Matrix::new(rhs, transpose_rhs);
    out.reset([lhs.n_cols(), right.n_cols]);
    scatter::dense(out.values_mut(), lhs, right, |column| column);
}

/// Csr by row_sparse: rows that the right side does not store are zero.
pub fn csr_row_sparse<T: Float>(
    out: &mut Dense<T>,
    lhs: CsrView<'_, T>,
    rhs: RowSparseView<'_, T>,
    context: &mut Context,
) {
    let n_cols = rhs.shape().row_size();
    out.reset_for_overwrite([lhs.n_rows(), n_cols]);
    let RowIdsView::Listed(ids) = rhs.indices() else {
        return gather::sums_of_rows(out.values_mut(), lhs, rhs.values(), n_cols);
    };
    // Numbering the rows costs one pass over them, and then a look-up costs O(1).
    if ids.len() <= lhs.nnz() {
        let rows = &mut context.ids;
        rows.begin(lhs.n_cols());
        ids.iter().for_each(|&id| rows.insert(id as usize));
        rows.finish(|_| {});
        gather::sums_of_stored_rows(out.values_mut(), lhs, rhs, |row| rows.find(row));
    } else {
        gather::sums_of_stored_rows(out.values_mut(), lhs, rhs, |row| rhs.find(row));
    }
}

/// Csr, transposed, by row_sparse: the rows are the columns that occur in rows that the right side stores.
pub fn csr_transposed_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    lhs: CsrView<'_, T>,
    rhs: RowSparseView<'_, T>,
    context: &mut Context,
) {
    let n_cols = rhs.shape().row_size();
    let columns = &mut context.ids;
    out.rebuild([lhs.n_cols(), n_cols], |ids, values| {
        columns.begin(lhs.n_cols());
        with_column_ids!(lhs.columns(), |ids| {
            for (row, _) in rhs.iter_rows() {
                let entries = lhs.starts()[row] as usize..lhs.ends()[row] as usize;
                ids[entries].iter().for_each(|id| columns.insert(id.at()));
            }
        });
        columns.finish(|column| ids.push(column as u64));
        values.resize(ids.len() * n_cols, T::zero());
        scatter::stored_rows(values, lhs, rhs, |column| columns.rank(column));
    });
}

/// Csr, transposed, by row_sparse, as dense.
pub fn csr_transposed_row_sparse_into_dense<T: Float>(
    out: &mut Dense<T>,
    lhs: CsrView<'_, T>,
    rhs: RowSparseView<'_, T>,
    _context: &mut Context,
) {
    out.reset([lhs.n_cols(), rhs.shape().row_size()]);
    scatter::stored_rows(out.values_mut(), lhs, rhs, |column| column);
}

/// Dense by csr: every row stores all columns that occur on the right.
pub fn dense_csr<T: Float>(
    out: &mut Csr<T>,
    lhs: DenseView<'_, T>,
    rhs: CsrView<'_, T>,
    transpose_lhs: bool,
    context: &mut Context,
) {
    let left = Matrix::new(lhs, transpose_lhs);
    let columns = &mut context.ids;
    columns.begin(rhs.n_cols());
    with_column_ids!(rhs.columns(), |ids| {
        for (&start, &end) in rhs.starts().iter().zip(rhs.ends()) {
            ids[start as usize..end as usize].iter().for_each(|id| columns.insert(id.at()));
        }
    });
    with_id_type!(rhs.n_cols(), |I| out.rebuild::<I, _>(rhs.n_cols(), |parts| {
        columns.finish(|column| parts.columns.push(I::from_index(column)));
        let stored = parts.columns.len();
        if left.n_rows == 0 {
            parts.columns.clear();
        }
        for row in 0..left.n_rows {
            if row > 0 {
                parts.columns.extend_from_within(..stored);
            }
            parts.indptr.push(((row + 1) * stored) as u64);
        }
        parts.values.resize(left.n_rows * stored, T::zero());
        scatter::dense_csr(&mut parts.values, stored, left, rhs, |column| columns.rank(column));
    }));
}

/// Dense by csr, as dense.
pub fn dense_csr_into_dense<T: Float>(
    out: &mut Dense<T>,
    lhs: DenseView<'_, T>,
    rhs: CsrView<'_, T>,
    transpose_lhs: bool,
    _context: &mut Context,
) {
    let left = Matrix::new(lhs, transpose_lhs);
    out.reset([left.n_rows, rhs.n_cols()]);
    scatter::dense_csr(out.values_mut(), rhs.n_cols(), left, rhs, |column| column);
}

/// Dense by csr transposed.
pub fn dense_csr_transposed<T: Float>(
    out: &mut Dense<T>,
    lhs: DenseView<'_, T>,
    rhs: CsrView<'_, T>,
    transpose_lhs: bool,
    _context: &mut Context,
) {
    let left = Matrix::new(lhs, transpose_lhs);
    out.reset_for_overwrite([left.n_rows, rhs.n_rows()]);
    gather::products_with_csr_rows(out.values_mut(), left, rhs);
}
