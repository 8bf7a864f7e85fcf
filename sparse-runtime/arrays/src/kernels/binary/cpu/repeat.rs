//! Sparse operands repeated to the shape of a result. Nothing here depends on the function.

use crate::formats::{
    ColumnId, Csr, CsrView, Dense, RowIdsView, RowSparse, RowSparseView, Shape, with_id_type,
};
use crate::kernels::broadcast::Walk;
use crate::kernels::converted;
use sparse_core::element::Float;

/// A csr matrix repeated to a matrix of `n_rows` and `n_cols`.
pub(super) fn csr<T: Float>(out: &mut Csr<T>, x: CsrView<'_, T>, n_rows: usize, n_cols: usize) {
    if (x.n_rows(), x.n_cols()) == (n_rows, n_cols) {
        return out.assign_csr(x);
    }
    with_id_type!(n_cols, |I| out.rebuild::<I, _>(n_cols, |parts| {
        for row in 0..n_rows {
            for_each_entry(x, row % x.n_rows(), n_cols, |column, value| {
                parts.push(I::from_index(column), value);
            });
            parts.finish_row();
        }
    }));
}

/// A csr matrix as dense, repeated to a shape of any rank.
pub(super) fn csr_into_dense<T: Float>(out: &mut Dense<T>, x: CsrView<'_, T>, shape: Shape) {
    if shape[..] == [x.n_rows(), x.n_cols()] {
        return converted(out.assign_csr(x));
    }
    out.reset(shape);
    let n_cols = shape.last().copied().unwrap_or(1);
    let rows = out.values_mut().chunks_exact_mut(n_cols.max(1));
    for (row, out) in rows.enumerate() {
        for_each_entry(x, row % x.n_rows(), n_cols, |column, value| out[column] = value);
    }
}

/// The entries of a row, or, where a single column is repeated, its entry in each column.
fn for_each_entry<T: Float>(
    x: CsrView<'_, T>,
    row: usize,
    n_cols: usize,
    mut visit: impl FnMut(usize, T),
) {
    let Some((columns, values)) = x.row(row) else {
        return;
    };
    if x.n_cols() == n_cols {
        for (column, &value) in columns.iter().zip(values) {
            visit(column, value);
        }
    } else if let [value] = values {
        (0..n_cols).for_each(|column| visit(column, *value));
    }
}

/// A row_sparse array repeated to a shape. Where rows are repeated, all of the result's are stored,
/// or none.
pub(super) fn row_sparse<T: Float>(out: &mut RowSparse<T>, x: RowSparseView<'_, T>, shape: Shape) {
    if *x.shape() == shape {
        return out.assign_row_sparse(x);
    }
    if (x.shape().rank(), x.shape().n_rows()) != (shape.rank(), shape.n_rows()) {
        return out.rebuild(shape, |ids, values| {
            if x.n_stored() > 0 {
                ids.extend(0..shape.n_rows() as u64);
                values.resize(shape.size(), T::zero());
                look_up(values, x, shape);
            }
        });
    }
    let walk = Walk::new(&Shape::new(&shape[1..]), [&Shape::new(&x.shape()[1..])]);
    out.rebuild(shape, |ids, values| {
        for (id, row) in x.iter_rows() {
            ids.push(id as u64);
            walk.for_each_run(|_, [position]| {
                if walk.moves(0) {
                    values.extend_from_slice(&row[position..position + walk.run()]);
                } else {
                    values.resize(values.len() + walk.run(), row[position]);
                }
            });
        }
    });
}

/// A row_sparse array as dense, repeated to a shape.
pub(super) fn row_sparse_into_dense<T: Float>(
    out: &mut Dense<T>,
    x: RowSparseView<'_, T>,
    shape: Shape,
) {
    if *x.shape() == shape {
        return converted(out.assign_row_sparse(x));
    }
    out.reset(shape);
    look_up(out.values_mut(), x, shape);
}

/// Each element at its place in the whole array, which may repeat; zero where it is not stored.
fn look_up<T: Float>(out: &mut [T], x: RowSparseView<'_, T>, shape: Shape) {
    let row_size = x.shape().row_size();
    let stored = |position: usize| match x.indices() {
        RowIdsView::All => x.values()[position],
        RowIdsView::Listed(_) => {
            (x.row(position / row_size)).map_or(T::zero(), |row| row[position % row_size])
        }
    };
    let walk = Walk::new(&shape, [x.shape()]);
    let step = usize::from(walk.moves(0));
    walk.for_each_run(|start, [first]| {
        for (offset, out) in out[start..start + walk.run()].iter_mut().enumerate() {
            *out = stored(first + offset * step);
        }
    });
}
