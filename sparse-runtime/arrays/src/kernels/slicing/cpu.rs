//! Slices on the CPU.

use super::SlicedPart;
use crate::formats::{
    ColumnId, Csr, CsrView, Dense, DenseView, RowIdsView, RowSparse, RowSparseView, with_id_type,
};
use crate::kernels::Context;
use crate::with_column_ids;
use sparse_core::element::Float;
use std::ops::Range;

/// The part of a dense array. O(size of the part).
pub(in crate::kernels) fn part_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    part: SlicedPart,
    _context: &mut Context,
) {
    out.reset_for_overwrite(part.extents());
    part.strided(0..part.shape.rank()).gather(out.values_mut(), x.values());
}

/// The part of a csr matrix. O(rows of the part · log nnz of a row + entries between its columns).
pub(in crate::kernels) fn part_csr<T: Float>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    part: SlicedPart,
    _context: &mut Context,
) {
    let [rows, columns, ..] = part.spans;
    let (least, most) = columns.bounds();
    with_id_type!(columns.len, |I| out.rebuild::<I, _>(columns.len, |parts| {
        with_column_ids!(x.columns(), |ids| {
            for row in (0..rows.len).map(|row| rows.at(row)) {
                let start = x.starts()[row] as usize;
                let row = &ids[start..x.ends()[row] as usize];
                let from = start + row.partition_point(|id| id.at() < least);
                let to = start + row.partition_point(|id| id.at() < most);
                let mut keep = |position: usize| {
                    if let Some(column) = columns.find(ids[position].at()) {
                        parts.push(I::from_index(column), x.values()[position]);
                    }
                };
                if columns.step < 0 {
                    (from..to).rev().for_each(&mut keep);
                } else {
                    (from..to).for_each(&mut keep);
                }
                parts.finish_row();
            }
        });
    }));
}

/// The part of a row_sparse array: rows that it does not store are not stored. O(log rows stored +
/// elements of the rows stored between the ends of the part).
pub(in crate::kernels) fn part_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    part: SlicedPart,
    _context: &mut Context,
) {
    let rows = part.spans[0];
    let stored = stored_between(x, rows.bounds());
    let inner = part.strided(1..part.shape.rank());
    let whole = part.keeps_rows_whole();
    out.rebuild(part.extents(), |ids, values| {
        let mut keep = |position: usize| {
            let id = x.row_id(position).and_then(|id| rows.find(id));
            let (Some(id), Some(row)) = (id, x.stored_row(position)) else { return };
            ids.push(id as u64);
            if whole {
                values.extend_from_slice(row);
            } else {
                let start = values.len();
                values.resize(start + inner.size(), T::zero());
                inner.gather(&mut values[start..], row);
            }
        };
        if rows.step < 0 {
            stored.rev().for_each(&mut keep);
        } else {
            stored.for_each(&mut keep);
        }
    });
}

/// Zeros, and a dense array as the x. O(size of the whole).
pub(in crate::kernels) fn place_dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    part: SlicedPart,
    _context: &mut Context,
) {
    out.reset(part.shape);
    part.strided(0..part.shape.rank()).scatter(out.values_mut(), x.values(), |x| x);
}

/// A csr matrix as the part of one that stores nothing else. O(rows of the whole + entries).
pub(in crate::kernels) fn place_csr<T: Float>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    part: SlicedPart,
    _context: &mut Context,
) {
    let [rows, columns, ..] = part.spans;
    let n_cols = part.shape.row_size();
    with_id_type!(n_cols, |I| out.rebuild::<I, _>(n_cols, |parts| {
        with_column_ids!(x.columns(), |ids| {
            for row in 0..part.shape.n_rows() {
                if let Some(row) = rows.find(row) {
                    let mut keep = |position: usize| {
                        let column = columns.at(ids[position].at());
                        parts.push(I::from_index(column), x.values()[position]);
                    };
                    let entries = x.starts()[row] as usize..x.ends()[row] as usize;
                    if columns.step < 0 {
                        entries.rev().for_each(&mut keep);
                    } else {
                        entries.for_each(&mut keep);
                    }
                }
                parts.finish_row();
            }
        });
    }));
}

/// A row_sparse array as the part of one that stores no other rows. O(rows stored · size of a whole
/// row).
pub(in crate::kernels) fn place_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    part: SlicedPart,
    _context: &mut Context,
) {
    let rows = part.spans[0];
    let inner = part.strided(1..part.shape.rank());
    let row_size = part.shape.row_size();
    out.rebuild(part.shape, |ids, values| {
        let mut keep = |position: usize| {
            let (Some(id), Some(row)) = (x.row_id(position), x.stored_row(position)) else {
                return;
            };
            ids.push(rows.at(id) as u64);
            let start = values.len();
            values.resize(start + row_size, T::zero());
            inner.scatter(&mut values[start..], row, |x| x);
        };
        if rows.step < 0 {
            (0..x.n_stored()).rev().for_each(&mut keep);
        } else {
            (0..x.n_stored()).for_each(&mut keep);
        }
    });
}

/// A dense array as the part of a row_sparse one that stores no other rows.
pub(in crate::kernels) fn place_dense_by_rows<T: Float>(
    out: &mut RowSparse<T>,
    x: DenseView<'_, T>,
    part: SlicedPart,
    context: &mut Context,
) {
    place_row_sparse(out, RowSparseView::table(*x.shape(), x.values()), part, context);
}

/// The positions of the stored rows whose ids are between two bounds.
fn stored_between<T: Float>(
    x: RowSparseView<'_, T>,
    (least, most): (usize, usize),
) -> Range<usize> {
    match x.indices() {
        RowIdsView::All => least..most,
        RowIdsView::Listed(ids) => {
            let position = |bound: usize| ids.partition_point(|&id| id < bound as u64);
            position(least)..position(most)
        }
    }
}
