//! Rows of a list on the CPU.

use crate::formats::{
    ColumnId, Csr, CsrView, DenseView, IdsView, RowSparse, RowSparseView, with_id_type,
};
use crate::kernels::Context;
use crate::with_column_ids;
use sparse_core::element::Float;

/// Of a dense array: the rows are stored.
pub fn dense_ids<T: Float>(
    out: &mut RowSparse<T>,
    x: DenseView<'_, T>,
    ids: IdsView<'_>,
    context: &mut Context,
) {
    row_sparse_ids(out, RowSparseView::table(*x.shape(), x.values()), ids, context);
}

/// Of a csr matrix.
pub fn csr_ids<T: Float>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    ids: IdsView<'_>,
    context: &mut Context,
) {
    let rows = &mut context.ids;
    rows.begin(x.n_rows());
    ids.iter().filter(|id| *id < x.n_rows()).for_each(|id| rows.insert(id));
    rows.finish(|_| {});
    with_id_type!(x.n_cols(), |I| out.rebuild::<I, _>(x.n_cols(), |parts| {
        with_column_ids!(x.columns(), |ids| {
            let (starts, ends) = (x.starts(), x.ends());
            parts.indptr.reserve(x.n_rows());
            let mut row = 0;
            while row < x.n_rows() {
                if rows.find(row).is_none() {
                    parts.finish_row();
                    row += 1;
                    continue;
                }
                // Rows that follow each other are copied as one.
                let first = row;
                row += 1;
                while row < x.n_rows() && starts[row] == ends[row - 1] && rows.find(row).is_some() {
                    row += 1;
                }
                let before = parts.values.len() as u64;
                let places = ends[first..row].iter().map(|end| end - starts[first] + before);
                parts.indptr.extend(places);
                let entries = starts[first] as usize..ends[row - 1] as usize;
                let columns = ids[entries.clone()].iter().map(|id| I::from_index(id.at()));
                parts.columns.extend(columns);
                parts.values.extend_from_slice(&x.values()[entries]);
            }
        });
    }));
}

/// Of a row_sparse array: those that it stores.
pub fn row_sparse_ids<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    ids: IdsView<'_>,
    context: &mut Context,
) {
    let n_rows = x.shape().n_rows();
    let rows = &mut context.ids;
    rows.begin(n_rows);
    ids.iter().filter(|id| *id < n_rows).for_each(|id| rows.insert(id));
    out.rebuild(*x.shape(), |ids, values| {
        rows.finish(|row| {
            if let Some(stored) = x.row(row) {
                ids.push(row as u64);
                values.extend_from_slice(stored);
            }
        });
    });
}
