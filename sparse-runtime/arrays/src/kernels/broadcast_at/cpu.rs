//! Repetition at a pattern on the CPU.

use crate::formats::{ColumnId, Csr, CsrView, DenseView, RowSparse, RowSparseView, Shape};
use crate::kernels::broadcast::strides;
use crate::kernels::broadcast_like::cpu::{share, with_axes};
use crate::kernels::reduce::Over;
use crate::kernels::{Context, binary};
use crate::with_column_ids;
use sparse_core::element::Float;
use sparse_core::ir::Axes;

/// A dense array repeated to the shape of a csr matrix.
pub fn dense_csr<T: Float>(
    out: &mut Csr<T>,
    x: DenseView<'_, T>,
    like: CsrView<'_, T>,
    axis: Axes,
    exclude: bool,
    mean: bool,
    _context: &mut Context,
) {
    let shape = Shape::from([like.n_rows(), like.n_cols()]);
    let source = with_axes(x.shape(), &shape, Over { axis, keepdims: false, exclude });
    let share: T = share(shape.size(), x.shape().size(), mean);
    let [row_step, column_step, ..] = strides(&source, &shape);
    let x = x.values();
    out.assign_csr(like);
    let mut values = out.values_mut().iter_mut();
    with_column_ids!(like.columns(), |ids| {
        for (row, (&start, &end)) in like.starts().iter().zip(like.ends()).enumerate() {
            let entries = &ids[start as usize..end as usize];
            let first = row * row_step;
            for (value, id) in values.by_ref().take(entries.len()).zip(entries) {
                *value = x[first + id.at() * column_step] * share;
            }
        }
    });
}

/// A number repeated to the shape of a csr matrix.
pub fn scalar_csr<T: Float>(
    out: &mut Csr<T>,
    x: T,
    like: CsrView<'_, T>,
    _axis: Axes,
    _exclude: bool,
    mean: bool,
    _context: &mut Context,
) {
    out.assign_csr(like);
    let size = Shape::from([like.n_rows(), like.n_cols()]).size();
    out.values_mut().fill(x * share::<T>(size, 1, mean));
}

/// A dense array repeated to the shape of a row_sparse array, at the rows that this stores.
pub fn dense_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    x: DenseView<'_, T>,
    like: RowSparseView<'_, T>,
    axis: Axes,
    exclude: bool,
    mean: bool,
    context: &mut Context,
) {
    let source = with_axes(x.shape(), like.shape(), Over { axis, keepdims: false, exclude });
    let share: T = share(like.shape().size(), x.shape().size(), mean);
    let x = DenseView::table(source, x.values());
    binary::cpu::intersection_dense_row_sparse(out, x, like, |x, _| x * share, context);
}

/// A number repeated to the shape of a row_sparse array, at the rows that this stores.
pub fn scalar_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    x: T,
    like: RowSparseView<'_, T>,
    _axis: Axes,
    _exclude: bool,
    mean: bool,
    _context: &mut Context,
) {
    let x = x * share::<T>(like.shape().size(), 1, mean);
    out.rebuild(*like.shape(), |ids, values| {
        ids.extend(like.iter_rows().map(|(id, _)| id as u64));
        values.resize(like.n_stored() * like.shape().row_size(), x);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cost_grows_with_the_rows_that_are_not_stored() {
        let long = 1 << 40;
        let rows = vec![3, long as u64 - 1];
        let like = RowSparse::new([long, 2], rows.clone(), vec![0.0, 1.0, 2.0, 3.0]).unwrap();
        let x = DenseView::new([2], &[2.0, 5.0]).unwrap();
        let (mut out, mut context) = (RowSparse::default(), Context::default());
        let over = Axes::default();
        dense_row_sparse(&mut out, x, like.view(), over, false, false, &mut context);
        let expected = RowSparse::new([long, 2], rows.clone(), vec![2.0, 5.0, 2.0, 5.0]);
        assert_eq!(out, expected.unwrap());
        scalar_row_sparse(&mut out, 3.0, like.view(), over, false, false, &mut context);
        assert_eq!(out, RowSparse::new([long, 2], rows, vec![3.0; 4]).unwrap());
    }

    #[test]
    fn no_cost_grows_with_the_width() {
        let wide = 1 << 40;
        let like = Csr::from_rows(wide, [vec![(3, 0.0), (wide - 1, 7.0)], vec![]]).unwrap();
        let x = DenseView::new([2, 1], &[2.0, 5.0]).unwrap();
        let (mut out, mut context) = (Csr::default(), Context::default());
        dense_csr(&mut out, x, like.view(), Axes::default(), false, false, &mut context);
        assert_eq!(out.values(), [2.0, 2.0]);
        assert_eq!(out.n_cols(), wide);
        scalar_csr(&mut out, 3.0, like.view(), Axes::default(), false, false, &mut context);
        assert_eq!(out.values(), [3.0, 3.0]);
    }
}
