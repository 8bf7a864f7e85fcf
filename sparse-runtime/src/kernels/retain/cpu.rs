//! Rows of a list on the CPU.

use crate::formats::{
    ColumnId, Csr, CsrView, DenseView, IdsView, RowSparse, RowSparseView, with_id_type,
};
use crate::kernels::Context;
use crate::lanes::same_type;
use crate::with_column_ids;
use sparse_core::element::Float;
use std::ops::Range;

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
    with_id_type!(x.n_cols(), |I| out.rebuild::<I, _>(x.n_cols(), |parts| {
        with_column_ids!(x.columns(), |ids| {
            let (starts, ends) = (x.starts(), x.ends());
            parts.indptr.reserve(x.n_rows());
            let mut copy = |rows: Range<usize>| {
                if rows.is_empty() {
                    return;
                }
                let before = parts.values.len() as u64;
                // Those in between are empty.
                parts.indptr.resize(rows.start + 1, before);
                let start = starts[rows.start];
                parts.indptr.extend(ends[rows.clone()].iter().map(|end| end - start + before));
                let entries = start as usize..ends[rows.end - 1] as usize;
                match same_type(&ids[entries.clone()]) {
                    Some(ids) => parts.columns.extend_from_slice(ids),
                    None => {
                        let ids = ids[entries.clone()].iter();
                        parts.columns.extend(ids.map(|id| I::from_index(id.at())));
                    }
                }
                parts.values.extend_from_slice(&x.values()[entries]);
            };
            // Rows that follow each other are copied as one.
            let mut run = 0..0;
            rows.finish(|row| {
                if !run.is_empty() && row == run.end && starts[row] == ends[row - 1] {
                    run.end += 1;
                } else {
                    copy(std::mem::replace(&mut run, row..row + 1));
                }
            });
            copy(run);
            let end = parts.values.len() as u64;
            parts.indptr.resize(x.n_rows() + 1, end);
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
