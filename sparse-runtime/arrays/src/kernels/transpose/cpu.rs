//! Transposition on the CPU.

use crate::formats::{ColumnId, Csr, CsrView, Dense, DenseView, with_id_type};
use crate::kernels::Context;
use crate::with_column_ids;
use sparse_core::element::Float;

/// The side of the square tiles: both sides of two of them fit the first cache.
const TILE: usize = 16;

/// Tile by tile, so that neither side is read or written by columns of the whole matrix.
pub fn dense<T: Float>(out: &mut Dense<T>, x: DenseView<'_, T>, _context: &mut Context) {
    let (n_rows, n_cols) = (x.shape().n_rows(), x.shape().row_size());
    out.reset_for_overwrite([n_cols, n_rows]);
    let (source, target) = (x.values(), out.values_mut());
    for top in (0..n_rows).step_by(TILE) {
        for left in (0..n_cols).step_by(TILE) {
            for row in top..n_rows.min(top + TILE) {
                for column in left..n_cols.min(left + TILE) {
                    target[column * n_rows + row] = source[row * n_cols + column];
                }
            }
        }
    }
}

/// Counts the entries of each column, then places the entries row by row, which leaves them sorted.
pub fn csr<T: Float>(out: &mut Csr<T>, x: CsrView<'_, T>, _context: &mut Context) {
    let (n_rows, n_cols) = (x.n_rows(), x.n_cols());
    with_id_type!(n_rows, |I| out.rebuild::<I, _>(n_rows, |parts| {
        let nnz = x.nnz();
        parts.indptr.resize(n_cols + 1, 0);
        parts.columns.resize(nnz, 0);
        parts.values.resize(nnz, T::zero());
        // indptr[c + 1] counts column c, then is where it starts, and in the end where it ends.
        let indptr = &mut parts.indptr;
        with_column_ids!(x.columns(), |ids| {
            let rows = || {
                x.starts().iter().zip(x.ends()).map(|(&start, &end)| start as usize..end as usize)
            };
            for column in rows().flat_map(|row| &ids[row]) {
                indptr[column.at() + 1] += 1;
            }
            let mut start = 0;
            for bound in &mut indptr[1..] {
                start += std::mem::replace(bound, start);
            }
            for (row, entries) in rows().enumerate() {
                for (column, &value) in ids[entries.clone()].iter().zip(&x.values()[entries]) {
                    let next = &mut indptr[column.at() + 1];
                    parts.columns[*next as usize] = I::from_index(row);
                    parts.values[*next as usize] = value;
                    *next += 1;
                }
            }
        });
    }));
}
