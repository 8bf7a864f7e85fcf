//! Matrix products on the CPU.

mod by_column;
mod gather;
mod gemm;
mod scatter;
mod stored;
mod wide;

pub use stored::{
    csr_row_sparse_transposed, dense_row_sparse, dense_row_sparse_transposed, row_sparse_dense,
    row_sparse_transposed_dense, row_sparse_transposed_row_sparse,
};

use crate::formats::{
    ColumnId, Csr, CsrView, Dense, DenseView, RowIdsView, RowSparse, RowSparseView, Shape,
    with_id_type,
};
use crate::kernels::Context;
use crate::kernels::context::{in_sums, round};
use crate::kernels::features::number_columns;
use crate::with_column_ids;
use gemm::Matrix;
use sparse_core::element::{Factor, Float};
use wide::AnyCsr;

/// The shape of a product, of which a vector on one side takes the axis away.
pub(super) fn product_shape(n_rows: usize, n_cols: usize, lhs: &Shape, rhs: &Shape) -> Shape {
    match (lhs.rank(), rhs.rank()) {
        (1, 1) => Shape::from([]),
        (1, _) => Shape::from([n_cols]),
        (_, 1) => Shape::from([n_rows]),
        _ => Shape::from([n_rows, n_cols]),
    }
}

/// The same where the left side is a matrix.
pub fn by_rows(n_rows: usize, n_cols: usize, rhs: &Shape) -> Shape {
    if rhs.rank() == 1 { Shape::from([n_rows]) } else { Shape::from([n_rows, n_cols]) }
}

/// Dense by dense.
pub fn dense_dense<T: Float>(
    out: &mut Dense<T>,
    lhs: DenseView<'_, T>,
    rhs: DenseView<'_, T>,
    transpose_lhs: bool,
    transpose_rhs: bool,
    _context: &mut Context,
) {
    let (left, right) = (Matrix::left(lhs, transpose_lhs), Matrix::new(rhs, transpose_rhs));
    out.reset_for_overwrite(product_shape(left.n_rows, right.n_cols, lhs.shape(), rhs.shape()));
    gemm::multiply(out.values_mut(), left, right);
}

/// Csr by dense.
pub fn csr_dense<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    lhs: CsrView<'_, V>,
    rhs: DenseView<'_, T>,
    transpose_rhs: bool,
    context: &mut Context,
) {
    let right = Matrix::new(rhs, transpose_rhs);
    out.reset_for_overwrite(by_rows(lhs.n_rows(), right.n_cols, rhs.shape()));
    // A single column is the same memory either way.
    if transpose_rhs && right.n_cols != 1 {
        gather::products_with_rows(out.values_mut(), lhs, rhs.values());
    } else {
        gather::sums_of_rows(out.values_mut(), lhs, rhs.values(), right.n_cols, context.parallel);
    }
}

/// Csr, transposed, by dense: the rows are the columns that occur.
pub fn csr_transposed_dense<T: Float, V: Factor<T>>(
    out: &mut RowSparse<T>,
    lhs: CsrView<'_, V>,
    rhs: DenseView<'_, T>,
    transpose_rhs: bool,
    context: &mut Context,
) {
    let right = Matrix::new(rhs, transpose_rhs);
    let width = right.n_cols;
    out.rebuild_lines(by_rows(lhs.n_cols(), width, rhs.shape()), |ids, values| {
        let Some(lhs) = AnyCsr::of(lhs) else { return };
        wide::with_wide(right, context, |right, context| wide::rows(ids, lhs, right, context));
        values.set_zeros(ids.len() * width);
        round(values, &context.sums);
    });
}

/// Csr, transposed, by dense, as dense.
pub fn csr_transposed_dense_into_dense<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    lhs: CsrView<'_, V>,
    rhs: DenseView<'_, T>,
    transpose_rhs: bool,
    context: &mut Context,
) {
    let right = Matrix::new(rhs, transpose_rhs);
    out.reset_for_overwrite(by_rows(lhs.n_cols(), right.n_cols, rhs.shape()));
    let Some(lhs) = AnyCsr::of(lhs) else { return };
    wide::with_wide(right, context, |right, context| wide::table(lhs, right, context));
    round(out.values_mut(), &context.sums);
}

/// Csr by row_sparse: rows that the right side does not store are zero.
pub fn csr_row_sparse<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    lhs: CsrView<'_, V>,
    rhs: RowSparseView<'_, T>,
    context: &mut Context,
) {
    let n_cols = rhs.shape().row_size();
    out.reset_for_overwrite(by_rows(lhs.n_rows(), n_cols, rhs.shape()));
    let RowIdsView::Listed(ids) = rhs.indices() else {
        return gather::sums_of_rows(out.values_mut(), lhs, rhs.values(), n_cols, context.parallel);
    };
    let wide = &mut context.wide;
    // Numbering the rows costs one pass over them, and then a look-up costs O(1).
    if ids.len() <= lhs.nnz() {
        let rows = &mut context.ids;
        rows.begin(lhs.n_cols());
        ids.iter().for_each(|&id| rows.insert(id as usize));
        rows.finish(|_| {});
        gather::sums_of_stored_rows(out.values_mut(), lhs, rhs, |row| rows.find(row), wide);
    } else {
        gather::sums_of_stored_rows(out.values_mut(), lhs, rhs, |row| rhs.find(row), wide);
    }
}

/// Csr, transposed, by row_sparse: the rows are the columns that occur in rows that the right side
/// stores.
pub fn csr_transposed_row_sparse<T: Float, V: Factor<T>>(
    out: &mut RowSparse<T>,
    lhs: CsrView<'_, V>,
    rhs: RowSparseView<'_, T>,
    context: &mut Context,
) {
    let n_cols = rhs.shape().row_size();
    let columns = &mut context.ids;
    out.rebuild_lines(by_rows(lhs.n_cols(), n_cols, rhs.shape()), |ids, values| {
        columns.begin(lhs.n_cols());
        with_column_ids!(lhs.columns(), |ids| {
            for (row, _) in rhs.iter_rows() {
                let entries = lhs.starts()[row] as usize..lhs.ends()[row] as usize;
                columns.insert_all(ids[entries].iter().map(|id| id.at()));
            }
        });
        columns.finish(|column| ids.push(column as u64));
        values.set_zeros(ids.len() * n_cols);
        in_sums(values, &mut context.sums, |sums| {
            scatter::stored_rows(sums, lhs, rhs, |column| columns.rank(column));
        });
    });
}

/// Csr, transposed, by row_sparse, as dense.
pub fn csr_transposed_row_sparse_into_dense<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    lhs: CsrView<'_, V>,
    rhs: RowSparseView<'_, T>,
    context: &mut Context,
) {
    out.reset(by_rows(lhs.n_cols(), rhs.shape().row_size(), rhs.shape()));
    in_sums(out.values_mut(), &mut context.sums, |sums| {
        scatter::stored_rows(sums, lhs, rhs, |column| column);
    });
}

/// Dense by csr: every row stores all columns that occur on the right.
pub fn dense_csr<T: Float, V: Factor<T>>(
    out: &mut Csr<T>,
    lhs: DenseView<'_, T>,
    rhs: CsrView<'_, V>,
    transpose_lhs: bool,
    context: &mut Context,
) {
    let left = Matrix::new(lhs, transpose_lhs);
    let columns = &mut context.ids;
    with_id_type!(rhs.n_cols(), |I| out.rebuild::<I, _>(rhs.n_cols(), |parts| {
        number_columns(columns, rhs, |column| parts.columns.push(I::from_index(column)));
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
        in_sums(&mut parts.values, &mut context.sums, |sums| {
            scatter::dense_csr(sums, stored, left, rhs, |column| columns.rank(column));
        });
    }));
}

/// Dense by csr, as dense.
pub fn dense_csr_into_dense<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    lhs: DenseView<'_, T>,
    rhs: CsrView<'_, V>,
    transpose_lhs: bool,
    context: &mut Context,
) {
    let left = Matrix::new(lhs, transpose_lhs);
    out.reset([left.n_rows, rhs.n_cols()]);
    in_sums(out.values_mut(), &mut context.sums, |sums| {
        scatter::dense_csr(sums, rhs.n_cols(), left, rhs, |column| column);
    });
}

/// Dense by csr transposed.
pub fn dense_csr_transposed<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    lhs: DenseView<'_, T>,
    rhs: CsrView<'_, V>,
    transpose_lhs: bool,
    _context: &mut Context,
) {
    let left = Matrix::left(lhs, transpose_lhs);
    let matrix = Shape::from([rhs.n_rows(), rhs.n_cols()]);
    out.reset_for_overwrite(product_shape(left.n_rows, rhs.n_rows(), lhs.shape(), &matrix));
    gather::products_with_csr_rows(out.values_mut(), left, rhs);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{CsrView, RowSelection};

    /// A stored zero in column 1, columns 2 and 5 empty, row 1 empty.
    fn matrix() -> Csr<f64> {
        Csr::from_rows(6, [vec![(0, 1.0), (1, 0.0)], vec![], vec![(0, 2.0), (3, 3.0), (4, 4.0)]])
            .unwrap()
    }

    #[test]
    fn a_transposed_product_stores_the_columns_that_occur() {
        let (mut out, mut context) = (RowSparse::default(), Context::default());
        let g = Dense::from_rows(&[[1.0, 10.0], [7.0, 7.0], [2.0, 20.0]]);
        csr_transposed_dense(&mut out, matrix().view(), g.view(), false, &mut context);
        let expected = [5.0, 50.0, 0.0, 0.0, 6.0, 60.0, 8.0, 80.0];
        assert_eq!((out.indices(), out.values()), (&[0, 1, 3, 4][..], &expected[..]));

        // Only row 0 is stored on the right: only its columns occur.
        let g = RowSparse::new([3, 1], vec![0, 1], vec![10.0, 7.0]).unwrap();
        csr_transposed_row_sparse(&mut out, matrix().view(), g.view(), &mut context);
        assert_eq!((out.indices(), out.values()), (&[0, 1][..], &[10.0, 0.0][..]));
    }

    #[test]
    fn every_row_of_dense_by_csr_stores_all_columns_of_the_right_side() {
        let (mut out, mut context) = (Csr::default(), Context::default());
        let lhs = Dense::from_rows(&[[0.0, 1.0, 0.0], [1.0, 1.0, 1.0]]);
        dense_csr(&mut out, lhs.view(), matrix().view(), false, &mut context);
        let zeros = [(0, 0.0), (1, 0.0), (3, 0.0), (4, 0.0)];
        let sums = [(0, 3.0), (1, 0.0), (3, 3.0), (4, 4.0)];
        assert_eq!(out, Csr::from_rows(6, [zeros, sums]).unwrap());
    }

    #[test]
    fn only_what_is_stored_is_multiplied() {
        let mut out = Dense::default();
        let mut rhs = Dense::full([6, 1], f64::INFINITY);
        csr_dense(&mut out, matrix().view(), rhs.view(), false, &mut Context::default());
        assert!(out.values()[0].is_nan(), "a stored zero times infinity");
        assert_eq!(out.values()[1..], [0.0, f64::INFINITY]);
        rhs.values_mut()[1] = 1.0;
        csr_dense(&mut out, matrix().view(), rhs.view(), false, &mut Context::default());
        assert_eq!(out.values(), [f64::INFINITY, 0.0, f64::INFINITY]);
    }

    /// All products with a csr, of which the widths differ from call to call.
    fn products(
        x: CsrView<'_, f64>,
        context: &mut Context,
    ) -> (Vec<Dense<f64>>, Vec<RowSparse<f64>>) {
        let (n_rows, n_cols) = (x.n_rows(), x.n_cols());
        let numbers = |shape: [usize; 2]| {
            let values = (0..shape[0] * shape[1]).map(|i| (i % 7) as f64 - 3.0);
            Dense::new(shape, values.collect()).unwrap()
        };
        let (mut dense, mut rows) = (vec![Dense::default(); 4], vec![RowSparse::default(); 2]);
        csr_dense(&mut dense[0], x, numbers([n_cols, 3]).view(), false, context);
        csr_transposed_dense(&mut rows[0], x, numbers([n_rows, 3]).view(), false, context);
        let some = RowSparse::new([n_cols, 2], vec![0, 3], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        csr_row_sparse(&mut dense[1], x, some.view(), context);
        dense_csr_into_dense(&mut dense[2], numbers([2, n_rows]).view(), x, false, context);
        dense_csr_transposed(&mut dense[3], numbers([2, n_cols]).view(), x, false, context);
        let some = RowSparse::new([n_rows, 1], vec![1], vec![2.0]).unwrap();
        csr_transposed_row_sparse(&mut rows[1], x, some.view(), context);
        (dense, rows)
    }

    #[test]
    fn views_are_read_as_copies_are() {
        let (x, mut context) = (matrix(), Context::default());
        let mut selection = RowSelection::new();
        let picked = selection.gather(&x, &[2, 0, 2]).unwrap();
        assert_eq!(
            products(picked, &mut context),
            products(picked.to_owned().view(), &mut context)
        );
        // Ids wider than the matrix needs.
        let ids: Vec<u64> = x.columns().iter().map(|id| id as u64).collect();
        let wide = CsrView::new(6, x.indptr(), &ids[..], x.values()).unwrap();
        assert_eq!(products(wide, &mut context), products(x.view(), &mut Context::default()));
    }

    #[test]
    fn no_cost_grows_with_the_width() {
        let wide = 1 << 40;
        let x = Csr::from_rows(wide, [vec![(3, 1.0), (wide - 1, 2.0)], vec![(3, 4.0)]]).unwrap();
        let mut context = Context::default();
        let mut gradient = RowSparse::default();
        let g = Dense::from_rows(&[[1.0], [10.0]]);
        csr_transposed_dense(&mut gradient, x.view(), g.view(), false, &mut context);
        assert_eq!(gradient.indices(), [3, wide as u64 - 1]);
        assert_eq!(gradient.values(), [41.0, 2.0]);
        let mut scores = Dense::default();
        csr_row_sparse(&mut scores, x.view(), gradient.view(), &mut context);
        assert_eq!(scores.values(), [45.0, 164.0]);
        let mut product = Csr::default();
        dense_csr(&mut product, g.view(), x.view(), true, &mut context);
        assert_eq!(product, Csr::from_rows(wide, [[(3, 41.0), (wide - 1, 2.0)]]).unwrap());
    }

    /// So that a row of sixteen numbers is one line of the cache, and not parts of two.
    #[test]
    fn rows_of_a_gradient_begin_a_line() {
        let (mut out, mut context) = (RowSparse::default(), Context::default());
        let y = Dense::from_rows(&[[1.0; 16], [2.0; 16]]);
        for n_columns in [900, 40, 5000] {
            let row = |first: usize| (first..n_columns).map(|column| (column << 10, 1.0));
            let x = Csr::from_rows(1 << 30, [row(1), row(0)]).unwrap();
            csr_transposed_dense(&mut out, x.view(), y.view(), false, &mut context);
            assert!(out.values().as_ptr().addr().is_multiple_of(64));
            assert_eq!(out.row(0), Some(&[2.0; 16][..]));
            assert_eq!(out.row((n_columns - 1) << 10), Some(&[3.0; 16][..]));
        }
    }

    #[test]
    fn room_for_rows_grows_in_few_steps() {
        let (mut out, mut context) = (RowSparse::default(), Context::default());
        let (y, mut room) = (Dense::from_rows(&[[1.0, 2.0]]), Vec::new());
        for n_columns in 10..200 {
            let row = Vec::from_iter((0..n_columns).map(|column| (column << 20, 1.0)));
            let x = Csr::from_rows(1 << 30, [row]).unwrap();
            csr_transposed_dense(&mut out, x.view(), y.view(), false, &mut context);
            let (shape, ids, values) = out.into_parts();
            room.push(values.capacity());
            out = RowSparse::new(shape, ids, values).unwrap();
        }
        room.dedup();
        assert!(room.len() < 8, "{room:?}");
    }
}
